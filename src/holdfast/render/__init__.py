"""What is told of a router to people and to programs: the same from a command and the daemon."""
