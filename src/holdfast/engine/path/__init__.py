"""Which way a packet takes by what the kernel has, and which by what it would have then."""
