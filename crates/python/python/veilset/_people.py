"""Our identity, the peers that we know, and our policy."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from . import _native
from ._errors import warn


@dataclass(frozen=True, repr=False)
class Identity:
    """This party's key pair, in a file that only its owner can read. This object has the path of the file, but no key: a copy
    in another process is usable only where the file is."""

    path: Path
    #: Our fingerprint, which the other party gives as ``peer``.
    fingerprint: str

    @classmethod
    def load(cls, path: str | os.PathLike[str] | None = None) -> Identity:
        """The identity in a file; without a path, the default one. Warns if others could replace the file."""
        found, fingerprint, warning = _native.identity(path)
        if warning is not None:
            warn(warning)
        return cls(found, fingerprint)

    @classmethod
    def new(cls, path: str | os.PathLike[str] | None = None) -> Identity:
        """Makes an identity in a new file; without a path, the default one."""
        return cls(*_native.new_identity(path))

    def __repr__(self) -> str:
        return f"<veilset.Identity {self.path}: {self.fingerprint}>"


class Peer(NamedTuple):
    """An entry of an address book."""

    name: str
    fingerprint: str
    address: str | None


class PeerBook:
    """The address book: names for the fingerprints of peers. Without a path, the default one."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = None if path is None else Path(path)

    def peers(self) -> list[Peer]:
        """All entries, by name. Warns if others could change the file."""
        peers, warnings = _native.peers(self.path)
        for warning in warnings:
            warn(warning)
        return [Peer(*peer) for peer in peers]

    def add(
        self,
        name: str,
        fingerprint: str,
        address: str | None = None,
        *,
        identity: Identity | str | os.PathLike[str] | None = None,
        force: bool = False,
    ) -> None:
        """Gives a peer a name. ``force`` replaces an entry of this name. Warns if others could change a file."""
        own = identity.path if isinstance(identity, Identity) else identity
        for warning in _native.add_peer((name, fingerprint, address), own, self.path, force):
            warn(warning)

    def remove(self, name: str) -> None:
        """Removes a peer. Warns if others could change the file."""
        for warning in _native.remove_peer(name, self.path):
            warn(warning)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PeerBook) and other.path == self.path

    def __hash__(self) -> int:
        return hash(self.path)

    def __repr__(self) -> str:
        return f"<veilset.PeerBook {self.path or 'of this user'}>"


class Policy:
    """The policy: which runs our side accepts. It is read, and refused if it is malformed, in each run."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Policy) and other.path == self.path

    def __hash__(self) -> int:
        return hash(self.path)

    def __repr__(self) -> str:
        return f"<veilset.Policy {self.path}>"
