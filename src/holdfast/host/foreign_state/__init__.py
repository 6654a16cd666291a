"""What others have on what a trial touches: recorded before it, put back after it is reverted."""
