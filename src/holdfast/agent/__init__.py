"""The daemon: what keeps the router in its declared state by itself."""
