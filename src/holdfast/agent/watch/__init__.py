"""Hints that something changed outside: the kernel, files, settings and services."""
