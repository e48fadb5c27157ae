"""Two processes intersect through the Python package, as an installed wheel must be able to do."""

import os
import socket
import sys
import tempfile
from pathlib import Path

import veilset

folder = Path(tempfile.mkdtemp())
ours, theirs = folder / "ours.csv", folder / "theirs.csv"
ours.write_text("email\nann@example.com\nbob@example.com\n")
theirs.write_text("email\nbob@example.com\ncho@example.com\n")
receiver, sender = (veilset.Identity.new(folder / name) for name in ("receiver.pem", "sender.pem"))
with socket.create_server(("127.0.0.1", 0)) as server:
    address = "127.0.0.1:%d" % server.getsockname()[1]
common = {"key": "email", "audit_log": None, "threads": 1, "allow_small": True}

child = os.fork()
if child == 0:
    veilset.intersect(
        theirs, role="sender", connect=address, identity=sender, peer=receiver.fingerprint, **common
    )
    os._exit(0)
result = veilset.intersect(
    ours, role="receiver", listen=address, identity=receiver, peer=sender.fingerprint, **common
)
_, status = os.waitpid(child, 0)
print(result)
sys.exit(status != 0 or result.matches != 1)
