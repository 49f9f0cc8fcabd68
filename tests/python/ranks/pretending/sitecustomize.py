"""In the path of ranks that share a node: each says that it is on one of its own."""

import os
import socket

if "PMI_RANK" in os.environ:
    socket.gethostname = lambda: f"node{os.environ['PMI_RANK']}"
