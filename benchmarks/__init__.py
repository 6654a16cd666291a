"""Holdfast measured beside other programs doing the same work: `python -m benchmarks`."""
