"""Addresses."""
