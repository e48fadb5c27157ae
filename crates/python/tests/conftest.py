"""Two parties on this machine, each with an identity of its own."""

from __future__ import annotations

import itertools
import secrets
import socket
import subprocess
import sys
import textwrap
import threading
from typing import Any

import pytest
import veilset


class Pair:
    """A receiver and a sender that know each other."""

    def __init__(self, folder: Any) -> None:
        self.folder = folder
        self.identities = [veilset.Identity.new(folder / name) for name in ("r.pem", "s.pem")]
        self.number = itertools.count()

    def options(self, party: int, address: str) -> dict[str, Any]:
        """Returns a party's options: party 0 listens as the receiver, and party 1 connects as the sender."""
        return {
            "role": ("receiver", "sender")[party],
            ("listen", "connect")[party]: address,
            "peer": self.identities[1 - party].fingerprint,
            "identity": self.identities[party],
            "connect_timeout": 30,
            "threads": 1,
            # Most tests have few rows.
            "allow_small": True,
        }

    def run(self, operation: str, receiver: Any, sender: Any, both: dict[str, Any] | None = None) -> list[Any]:
        """Returns each side's result or exception. A side is its data and its options."""
        address = free_address()
        results: list[Any] = [None, None]

        def one(party: int, side: Any) -> None:
            data, options = side
            options = {**self.options(party, address), **(both or {}), **options}
            try:
                results[party] = getattr(veilset, operation)(data, **options)
            except Exception as e:
                results[party] = e

        threads = [threading.Thread(target=one, args=(i, side)) for i, side in enumerate((receiver, sender))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results

    def both(self, operation: str, receiver: Any, sender: Any, both: dict[str, Any] | None = None) -> list[Any]:
        """Returns both results, or raises the exception of a side that failed."""
        results = self.run(operation, receiver, sender, both)
        failed = [result for result in results if isinstance(result, Exception)]
        # An error of the network or the peer may be a consequence of the other side's.
        for result in sorted(failed, key=lambda e: isinstance(e, (veilset.NetworkError, veilset.PeerError))):
            raise result
        return results


def free_address() -> str:
    """Returns an address on which nobody listens, and on which no other test will.

    On Linux the whole network 127 leads to the machine itself, so each call draws its own address there.
    """
    host = f"127.{1 + secrets.randbelow(254)}.{secrets.randbelow(256)}.{1 + secrets.randbelow(254)}"
    with socket.socket() as s:
        s.bind((host if sys.platform == "linux" else "127.0.0.1", 0))
        host, port = s.getsockname()
        return f"{host}:{port}"


def process(script: str, **values: Any) -> subprocess.Popen[str]:
    """Starts another Python, which runs this script."""
    text = textwrap.dedent(script)
    return subprocess.Popen([sys.executable, "-c", text, *map(str, values.values())], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


class Listener:
    """A peer that waits, and would notice a connection."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.socket.setblocking(False)
        self.address = f"127.0.0.1:{self.socket.getsockname()[1]}"

    def heard(self) -> bool:
        """Returns whether anybody connected."""
        try:
            self.socket.accept()[0].close()
        except BlockingIOError:
            return False
        return True


@pytest.fixture
def listener():
    waits = Listener()
    yield waits
    waits.socket.close()


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A folder with configuration and state of its own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


@pytest.fixture
def pair(tmp_path):
    return Pair(tmp_path)
