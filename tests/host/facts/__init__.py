"""Facts: the kernel's from a real kernel, DNS answers from a real server, the rest from files."""
