#!/usr/bin/env python3
"""Measures Tables 3, 5, 6 and 7 of CZZDL again and prints them with the paper's figures beside ours. (Table 2,
mqRPMT, is count without the last addition.)

    cargo build --release -p veilset-cli
    bench/czzdl.py [--log-n 12,16,20] [--op count,...] [--veilset target/release/veilset]

Progress goes to standard error, the tables (Markdown) to standard output.
"""
import argparse
import json
import subprocess
import sys

# One thread, Curve25519 (marked with a star in the paper), per log2 of the sizes: seconds LAN, seconds WAN, MB.
PAPER = {
    "count": ("Table 5, PSI-card", {12: (0.27, 0.82, 0.27), 16: (3.51, 5.42, 4.46), 20: (54.89, 68.31, 71.30)}),
    "sum": ("Table 6, PSI-card-sum", {12: (0.31, 1.36, 0.37), 16: (3.73, 6.53, 5.75), 20: (57.44, 76.16, 95.30)}),
    "union": ("Table 7, PSU", {12: (0.30, 1.19, 0.41), 16: (3.55, 6.38, 6.48), 20: (55.48, 74.96, 103.31)}),
    "intersect": ("Table 3, PSI", {12: (0.29, 1.19, 0.41), 16: (3.56, 6.38, 6.48), 20: (55.11, 75.56, 103.31)}),
}


def bench(args, op, log_n, net, *more):
    command = [args.veilset, "bench", "--op", op, "--protocol", "dh", "--n", str(1 << log_n), "--threads", "1"]
    command += ["--net", net, "--json"]
    print(" ".join(command + list(more)), file=sys.stderr)
    return json.loads(subprocess.run(command + list(more), check=True, stdout=subprocess.PIPE).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--log-n", default="12,16,20")
    parser.add_argument("--op", default=",".join(PAPER))
    parser.add_argument("--veilset", default="target/release/veilset")
    args = parser.parse_args()
    for op in args.op.split(","):
        title, paper = PAPER[op]
        print(f"\n`{op}` ({title})\n")
        print("| n | LAN s | paper | WAN s | paper | MB | paper | CPU s receiver | CPU s sender | RSS MB |")
        print("|---|---|---|---|---|---|---|---|---|---|")
        for log_n in map(int, args.log_n.split(",")):
            lan = bench(args, op, log_n, "lan", "--one-sided")
            wan = bench(args, op, log_n, "wan")
            p_lan, p_wan, p_mb = paper.get(log_n, ("", "", ""))
            mb = (lan["bytes_receiver_to_sender"] + lan["bytes_sender_to_receiver"]) / 1e6
            rss = max(lan["peak_rss_mb"], wan["peak_rss_mb"])
            cpu = [f"{lan[r + '_cpu_seconds']:.2f}" for r in ("receiver", "sender")]
            cells = [f"2^{log_n}", f"{lan['seconds']:.2f}", p_lan, f"{wan['seconds']:.2f}", p_wan, f"{mb:.2f}", p_mb]
            print("| " + " | ".join(map(str, [*cells, *cpu, f"{rss:.0f}"])) + " |", flush=True)


if __name__ == "__main__":
    main()
