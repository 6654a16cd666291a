"""Provider actions: what parts propose to be done at providers, and how that comes about."""
