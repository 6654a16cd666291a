"""`holdfast demo`: Holdfast at work where nothing can be broken."""
