"""Confirm or revert: what was changed stays only if somebody says so in time."""
