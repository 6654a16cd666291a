"""What every page of Holdfast shares: who is let in, headers, layout, events as they happen, the
server.

It knows neither routers nor the daemon: a site brings its paths, its templates and its documents.
"""
