"""FRR: its sockets, its configuration as a model, and the driver that changes it."""
