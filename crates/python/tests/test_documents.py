"""The blocks of Python in the documentation, run as they are printed.

A comment `<!-- py`, lines, `-->` runs before the next block, unseen. `<!-- py-peer NAME` is what the other party runs during the next
block: NAME is its name in the address book, `you` our fingerprint, `frame` a frame of its keys. `NAME.example:7000`, which is
`0.0.0.0:7000` where NAME listens, is a free port of this machine. Blocks that are not run are marked with a reason (`not-run=`).
"""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

from conftest import free_address

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGES = ["README.md", "docs/guide/python.md", "crates/python/README.md"]
FINGERPRINT = re.compile(r"\b(?:[0-9a-z]{5}-){7}[0-9a-z]{5}\b")
PART = re.compile(r"^<!-- (py(?:-peer)?)(?: ([\w-]+))?\n(.*?)^-->\n|^```python([^\n]*)\n(.*?)^```\n", re.S | re.M)

PEER = """
import os, sys
sys.argv = ["peer"]
import pandas as pd
import veilset

you = os.environ["YOU"]
frame = pd.DataFrame({"email": [f"user{i}@example.org" for i in range(10, 40)]})
"""


def parts(text: str) -> list[tuple[str, str | None, str]]:
    """Returns the parts that are run: "py", "py-peer" with the name, or a block."""
    found: list[tuple[str, str | None, str]] = []
    for kind, name, script, info, block in PART.findall(text):
        if kind:
            found.append((kind, name or None, script))
        elif "not-run=" not in info:
            assert not info, f"{info} means nothing"
            found.append(("block", None, block))
    return found


def run(page: str, folder: pathlib.Path) -> int:
    """Runs a page, both parties in folders of their own. Returns how many blocks ran."""
    addresses: dict[str, str] = {}

    def local(text: str, who: str) -> str:
        def address(found: re.Match[str]) -> str:
            name = f"{found[1] or who}:{found[2] or found[3]}"
            return addresses.setdefault(name, free_address())

        return re.sub(r"\b([\w-]+)\.example:(\d+)|\b0\.0\.0\.0:(\d+)", address, text)

    def start(who: str, script: str, **more: str) -> subprocess.Popen[str]:
        home = folder / who
        home.mkdir(exist_ok=True)
        env = {k: v for k, v in os.environ.items() if not k.startswith("XDG_")} | {"HOME": str(home)} | more
        return subprocess.Popen([sys.executable, "-c", script], cwd=home, env=env, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)

    def ended(process: subprocess.Popen[str], script: str) -> str:
        out = process.communicate(timeout=120)[0]
        assert process.returncode == 0, f"{page}: {script}\n{out}"
        return out

    def identity(who: str) -> str:
        """Returns a party's fingerprint, and makes its identity the first time."""
        script = """
import veilset
try:
    print(veilset.Identity.load().fingerprint)
except veilset.UsageError:
    print(veilset.Identity.new().fingerprint)
"""
        return ended(start(who, script), script).split()[-1]

    text = (ROOT / page).read_text()
    blocks = 0
    # All blocks of a page are one process, which says when another party is to run.
    script: list[str] = ["import warnings", "warnings.simplefilter('ignore')"]
    others: list[tuple[str, str]] = []
    for kind, name, code in parts(text):
        if kind == "py":
            script.append(code)
        elif kind == "py-peer":
            assert name
            others.append((name, code))
            script.append(f"print('now {len(others) - 1}', flush=True)")
        else:
            script.append(code)
            blocks += 1
    names = {name for name, _ in others}
    fingerprints = {name: identity(name) for name in names}
    whole = local("\n".join(script), "you")
    for found in set(FINGERPRINT.findall(whole)):
        whole = whole.replace(found, next(iter(fingerprints.values())))
    if "Identity.new()" not in whole:
        identity("you")
        for name, fingerprint in fingerprints.items():
            book = f"import veilset\nveilset.PeerBook().add({name!r}, {fingerprint!r})"
            ended(start("you", book), book)
    process = start("you", whole)
    assert process.stdout
    out, running = "", []
    for line in process.stdout:
        out += line
        if now := re.match(r"now (\d+)$", line):
            name, code = others[int(now[1])]
            you = identity("you")
            code = PEER + local(textwrap.dedent(code), name)
            running.append((start(name, code, YOU=you), code))
    assert process.wait(120) == 0, f"{page}: {out}"
    for other, code in running:
        ended(other, code)
    return blocks


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run_as_they_are_printed(page: str, tmp_path: pathlib.Path) -> None:
    """Both parties run in folders of their own."""
    assert run(page, tmp_path) > 0


def test_a_block_that_fails_is_noticed(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the tests above can fail."""
    (tmp_path / "page.md").write_text("```python\nimport veilset\nveilset.no_such_thing\n```\n")
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    with pytest.raises(AssertionError, match="no_such_thing"):
        run("page.md", tmp_path)
    (tmp_path / "page.md").write_text("```python,later\n1\n```\n")
    with pytest.raises(AssertionError, match="later"):
        run("page.md", tmp_path)
