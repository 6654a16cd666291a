"""Kernel network state over rtnetlink: one small codec, one driver per artifact kind."""
