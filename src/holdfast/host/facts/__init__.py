"""Facts as this machine tells them: the kernel, the DHCP clients, the DNS, the health checks."""
