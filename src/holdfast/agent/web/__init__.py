"""What the daemon shows on a local address: metrics, whether it is well, and a console to look at.

Nothing can be changed from here, and no secret is shown.
"""
