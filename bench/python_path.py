#!/usr/bin/env python3
"""Compares a run through the Python package with the same run by the program.

    cargo build --release -p veilset-cli -p veilset-python
    bench/python_path.py [--log-n 20] [--pairs 7] [--wide BYTES] [--files parquet] [--frame pandas]

It takes a Python with what the tests of the package need (`target/python`), and runs the package as it lies in the repository.
Both intersect the same rows by `vole`: a key of 16 characters and a number, half of the keys in common, in a random order. The
program reads an Arrow file (or Parquet) and writes one; Python has a frame, and gets one. A pair is one run of each, in
changing order. The parties of a run are processes of this machine, both of the same kind, with a thread each. The sender
listens before the receiver starts.

Printed are the receiver's CPU seconds, wall seconds and most memory in MB: of the program from its start to its end, and of
Python from the call of `intersect` to its return. Python's memory is that of the process, and the fourth number is what it has
before the call. Then come the medians of the ratios of all pairs.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]

PARTY = """
import json, resource, sys, time
import polars, veilset
file, kind, role, place, address, peer, identity = sys.argv[1:]
frame = polars.read_ipc(file, memory_map=False) if file.endswith("arrow") else polars.read_parquet(file)
frame = {"polars": lambda: frame, "pandas": frame.to_pandas, "pyarrow": frame.to_arrow}[kind]()
held = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
before = held()
begun = time.process_time(), time.monotonic()
result = veilset.intersect(frame, key="key", role=role, peer=peer, identity=identity, audit_log=None, threads=1,
                           protocol="vole", **{place: address})
took = time.process_time() - begun[0], time.monotonic() - begun[1]
assert role == "sender" or len(result.frame) == len(frame) // 2, len(result.frame)
print(json.dumps([*took, held(), before]))
"""


class Bench:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        target = Path(args.target)
        self.program = str(target / "veilset")
        package = folder / "package" / "veilset"
        shutil.copytree(ROOT / "crates" / "python" / "python" / "veilset", package, ignore=shutil.ignore_patterns("*.so"))
        shutil.copy(target / "libveilset_python.so", package / "_native.abi3.so")
        self.env = {**os.environ, "PYTHONPATH": str(package.parent)}
        self.port = args.port
        self.identities = [str(folder / name) for name in ("r.pem", "s.pem")]
        self.fingerprints = []
        for path in self.identities:
            self.answer("identity", "new", "--output", path)
            self.fingerprints.append(self.answer("identity", "show", "--identity", path).split()[-1])
        self.files = [str(folder / f"{name}.{args.files}") for name in ("r", "s")]
        self.make()

    def answer(self, *words):
        return subprocess.run([self.program, *words], check=True, capture_output=True, text=True).stdout

    def make(self):
        import polars
        import pyarrow

        n = 1 << self.args.log_n
        for file, first in zip(self.files, (0, n // 2)):
            index = polars.int_range(first, first + n, eager=True).sample(fraction=1, shuffle=True, seed=first)
            columns = {"key": index.cast(polars.String).str.pad_start(16, "k"), "n": index * 7}
            if self.args.wide:
                columns["wide"] = polars.Series([b"w" * self.args.wide]).new_from_index(0, n)
            frame = polars.DataFrame(columns)
            if file.endswith("arrow"):
                with pyarrow.ipc.new_file(file, frame.to_arrow().schema) as to:
                    to.write_table(frame.to_arrow())
            else:
                frame.write_parquet(file)

    def start(self, kind, party):
        role, place = (("receiver", "connect"), ("sender", "listen"))[party]
        address, peer, identity = f"127.0.0.1:{self.port}", self.fingerprints[1 - party], self.identities[party]
        if kind == "python":
            command = [sys.executable, "-c", PARTY, self.files[party], self.args.frame, role, place, address, peer, identity]
        else:
            command = [self.program, "intersect", self.files[party], "--key", "key", "--role", role, f"--{place}", address,
                       "--peer", peer, "--identity", identity, "--audit-log", "none", "--threads", "1", "--protocol", "vole"]
            if party == 0:
                command += ["--output", str(self.folder / f"out.{self.args.files}"), "--force"]
        return subprocess.Popen(command, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, kind):
        """CPU seconds, wall seconds and memory of the receiver; of Python also the memory before the call."""
        self.port += 1
        sender = self.start(kind, 1)
        while not listens(self.port):
            if sender.poll() is not None:
                sys.exit(f"the sender failed: {sender.stderr.read()}")
            time.sleep(0.05)
        begun = time.monotonic()
        receiver = self.start(kind, 0)
        out, err = receiver.stdout.read(), receiver.stderr.read()
        _, status, usage = os.wait4(receiver.pid, 0)
        receiver.returncode = os.waitstatus_to_exitcode(status)
        figures = [usage.ru_utime + usage.ru_stime, time.monotonic() - begun, usage.ru_maxrss / 1e3]
        sender.communicate()
        if receiver.returncode or sender.returncode:
            sys.exit(f"a run by {kind} failed: {err}")
        return json.loads(out) if kind == "python" else figures


def listens(port):
    """Whether somebody on this machine listens at a port, without asking."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(line[3] == "0A" and line[1].endswith(f":{port:04X}") for line in lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--log-n", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--wide", type=int, default=0, help="bytes of a third column in each row")
    parser.add_argument("--files", choices=["arrow", "parquet"], default="arrow")
    parser.add_argument("--frame", choices=["polars", "pandas", "pyarrow"], default="polars")
    parser.add_argument("--port", type=int, default=7300)
    parser.add_argument("--target", default=str(ROOT / "target" / "release"))
    args = parser.parse_args()
    ratios = {"CPU": [], "wall": []}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, Path(folder))
        for pair in range(args.pairs):
            kinds = ["program", "python"] if pair % 2 else ["python", "program"]
            one = {kind: bench.run(kind) for kind in kinds}
            for i, what in enumerate(ratios):
                ratios[what].append(one["python"][i] / one["program"][i])
            print(json.dumps({kind: [round(figure, 2) for figure in figures] for kind, figures in one.items()}), flush=True)
    for what, of in ratios.items():
        print(f"{what}: Python takes {statistics.median(of):.3f} of the program's (from {min(of):.3f} to {max(of):.3f})")


if __name__ == "__main__":
    main()
