"""What commands and the daemon both do."""
