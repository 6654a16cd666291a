"""Resources against each other."""
