"""What the daemon answers to its API, by area."""
