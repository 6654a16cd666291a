"""The ledger's package. Nothing outside it touches SQLite."""
