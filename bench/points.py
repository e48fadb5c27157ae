#!/usr/bin/env python3
"""Compares what the planner predicts with what is measured, at points spread over operations, sizes and networks.

    cargo build --release -p veilset-cli && cargo build --release -p veilset-dev
    RUSTFLAGS="--cfg veilset_without_avx512" cargo build --release -p veilset-cli -p veilset-dev --target-dir target/avx2
    bench/points.py [--runs 3] [--avx2 target/avx2/release] [--built-in] [--results FILE] [POINT ...]

At each point `veilset plan` ranks the protocols, and `veilset-dev bench` runs all of them that are predicted to take at most three
times as long as the best. A prediction is right within a factor of 1.4, and a choice within 15% of the best that is measured.
Both parties are processes on this machine, so the prediction is that for two which share its cores; the speeds are those that
`veilset calibrate` measures first, with each program, or the built-in ones. It wants an idle machine, and takes half an hour.

What is measured is kept in the file of results: the same command goes on where it broke off. At the end comes a table.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_OFF, MOST_WORSE, WORTH_A_RUN = 1.4, 1.15, 3.0
ROW = 17  # bytes of an encoded item of `veilset-dev bench`

# Operation, binary logarithms of the receiver's and of the sender's items, network, threads of a party, vectors.
POINTS = [
    ("intersect", 8, 8, "10Gbps,0.1ms", 1, "avx512"),
    ("intersect", 8, 8, "50Mbps,80ms", 1, "avx2"),
    ("intersect", 12, 12, "100Mbps,20ms", 1, "avx512"),
    ("intersect", 16, 16, "10Gbps,0.1ms", 1, "avx512"),
    ("intersect", 16, 16, "10Gbps,0.1ms", 1, "avx2"),
    ("intersect", 16, 16, "10Mbps,80ms", 2, "avx512"),
    ("intersect", 20, 20, "10Gbps,0.01ms", 1, "avx512"),
    ("intersect", 20, 20, "10Gbps,0.01ms", 1, "avx2"),
    ("intersect", 20, 20, "10Gbps,0.1ms", 2, "avx512"),
    ("intersect", 20, 20, "50Mbps,80ms", 1, "avx512"),
    ("intersect", 10, 18, "1Gbps,5ms", 1, "avx512"),
    ("union", 8, 8, "50Mbps,80ms", 1, "avx512"),
    ("union", 12, 12, "10Mbps,80ms", 1, "avx512"),
    ("union", 14, 14, "10Gbps,0.1ms", 1, "avx2"),
    ("union", 16, 16, "10Gbps,0.1ms", 1, "avx512"),
    ("union", 16, 16, "10Gbps,0.1ms", 2, "avx2"),
    ("union", 18, 18, "1Gbps,5ms", 1, "avx512"),
    ("union", 16, 16, "10Mbps,0.01ms", 1, "avx512"),
    ("count", 12, 12, "10Gbps,0.1ms", 1, "avx512"),
    ("count", 16, 16, "1Gbps,40ms", 1, "avx2"),
    ("sum", 14, 14, "100Mbps,20ms", 2, "avx512"),
    ("id", 14, 14, "1Gbps,5ms", 1, "avx512"),
    ("share", 12, 14, "10Gbps,0.1ms", 1, "avx512"),
]


def answer(program, *words):
    done = subprocess.run([program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=900)
    if done.returncode != 0:
        sys.exit(f"{program} {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def described(point):
    op, receiver, sender, net, threads, vectors = point
    sizes = f"2^{receiver}" if receiver == sender else f"2^{receiver}, 2^{sender}"
    return f"{op} {sizes}, {net}, {threads} thread{'s' * (threads > 1)}, {vectors}"


def candidates(program, speeds, point):
    """The choices that are worth a run, the best first, with the seconds that are predicted."""
    op, receiver, sender, net, threads, _ = point
    plan = json.loads(answer(
        program, "plan", "--json", "--op", op, "--n", str(1 << receiver), "--n-peer", str(1 << sender), "--net", net,
        "--threads", str(threads), "--shared-cores", str(os.cpu_count()), "--max-row", str(ROW), *speeds,
    ))
    ranked = plan["candidates"]
    return [one for one in ranked if one["seconds"] <= WORTH_A_RUN * ranked[0]["seconds"]]


def measured(program, point, candidate):
    op, receiver, sender, net, threads, _ = point
    run = json.loads(answer(
        f"{program}-dev", "bench", "--json", "--op", op, "--protocol", candidate["protocol"], "--group", candidate["group"],
        "--n", str(1 << receiver), "--n-sender", str(1 << sender), "--net", net, "--threads", str(threads),
    ))
    return run["seconds"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", default=ROOT / "target/release", type=Path, help="where veilset and veilset-dev are")
    parser.add_argument("--avx2", type=Path, help="where those are that do without AVX-512; without it, its points are left out")
    parser.add_argument("--runs", type=int, default=3, help="runs of each protocol; the median counts")
    parser.add_argument("--built-in", action="store_true", help="predict by the built-in speeds")
    parser.add_argument("--results", type=Path, default=ROOT / "target/points.json", help="where runs are kept")
    parser.add_argument("points", nargs="*", type=int, help="the points to measure, from 0")
    args = parser.parse_args()
    programs = {"avx512": str(args.folder / "veilset"), "avx2": str(args.avx2 / "veilset") if args.avx2 else None}
    results = json.loads(args.results.read_text()) if args.results.exists() else {}
    chosen = [POINTS[i] for i in args.points] if args.points else POINTS
    chosen = [point for point in chosen if programs[point[-1]]]
    with tempfile.TemporaryDirectory() as folder:
        speeds = {}
        for vectors in {point[-1] for point in chosen}:
            file = Path(folder) / f"{vectors}.json"
            # A file of no speeds cannot be named, so the built-in ones are those of an empty folder for state.
            if args.built_in:
                os.environ["XDG_STATE_HOME"] = folder
                speeds[vectors] = []
            else:
                answer(programs[vectors], "calibrate", "--quiet", "--speeds", str(file))
                speeds[vectors] = ["--speeds", str(file)]
        print("| point | chosen | predicted s | measured s | ratio | best measured | chosen by best |")
        print("|---|---|---|---|---|---|---|")
        wrong = 0
        for point in chosen:
            program = programs[point[-1]]
            ranked = candidates(program, speeds[point[-1]], point)
            took = {}
            for candidate in ranked:
                name = f"{described(point)}, {candidate['protocol']}, {candidate['group']}"
                runs = results.setdefault(name, [])
                while len(runs) < args.runs:
                    runs.append(measured(program, point, candidate))
                    args.results.write_text(json.dumps(results, indent=1))
                took[candidate["protocol"]] = statistics.median(runs)
            first = ranked[0]
            best = min(took, key=took.get)
            ratio, worse = first["seconds"] / took[first["protocol"]], took[first["protocol"]] / took[best]
            right = 1 / MOST_OFF <= ratio <= MOST_OFF and worse <= MOST_WORSE
            wrong += not right
            others = ", ".join(
                f"{one['protocol']} {one['seconds'] / took[one['protocol']]:.2f}" for one in ranked[1:]
            )
            print(
                f"| {described(point)} | {first['protocol']} | {first['seconds']:.3f} | {took[first['protocol']]:.3f} "
                f"| {ratio:.2f}{'' if right else ' **!**'}{f' ({others})' if others else ''} | {best} | {worse:.2f} |",
                flush=True,
            )
    print(f"\n{len(chosen) - wrong} of {len(chosen)} points are right.")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
