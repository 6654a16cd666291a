"""`holdfast explain`: what somebody means, and all that is known of it."""
