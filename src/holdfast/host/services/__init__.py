"""Programs that run as long as they are declared: under systemd, or a supervisor of our own."""
