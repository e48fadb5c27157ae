"""A Postgres for this test run: a cluster in a temporary folder, which listens only on a socket in that folder."""

from __future__ import annotations

import contextlib
import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator


def binaries() -> pathlib.Path:
    """Returns the folder of the server's programs, as Debian and others install them."""
    installed = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    found = installed[-1] if installed else shutil.which("initdb")
    assert found, "there is no Postgres to test with: install the Debian package postgresql"
    return pathlib.Path(found).resolve().parent


@contextlib.contextmanager
def server() -> Iterator[str]:
    """Starts a server, and stops it at the end. Yields its URI, without the name of a database."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="veilset-postgres-"))
    # The server refuses to run as root.
    user = pwd.getpwnam("postgres" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name)
    as_user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"] if os.getuid() == 0 else []
    os.chown(folder, user.pw_uid, user.pw_gid)

    def run(program: str, *words: str) -> None:
        command = [*as_user, str(binaries() / program), "--pgdata", str(folder / "data"), *words]
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        assert done.returncode == 0, done.stdout

    try:
        run("initdb", "--auth=trust", "--username=tester", "--no-sync", "--encoding=UTF8", "--locale=C")
        own = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        run("pg_ctl", "start", "--wait", "--silent", "--log", str(folder / "log"), "--options", own)
        try:
            yield f"postgresql://tester@/postgres?host={folder}"
        finally:
            run("pg_ctl", "stop", "--mode=immediate", "--silent")
    finally:
        shutil.rmtree(folder)
