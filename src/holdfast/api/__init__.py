"""The daemon's API: gRPC on Unix sockets, and the client for it."""

import os

# gRPC reads these when it is imported. It would write to stderr in a form of its own, about clients
# that go away among other things; and nothing that is forked here ever calls it.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
