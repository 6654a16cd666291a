"""Holdfast: the network state of a Linux router, held to what its sources declare."""

__version__ = "0.1.0"
