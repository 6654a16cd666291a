"""Routing protocols that FRR speaks: BGP, BFD and OSPF."""
