"""Plugins: programs of others that contribute parts, kept at arm's length."""
