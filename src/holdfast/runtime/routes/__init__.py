"""Routing control: what owners declare over its API, judged, stored and told of."""
