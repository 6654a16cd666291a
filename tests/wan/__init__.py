"""The way out: DHCP clients and what is made of their leases, against real servers."""
