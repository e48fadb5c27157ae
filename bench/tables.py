#!/usr/bin/env python3
"""Measures tables of the papers again and prints them (Markdown) with the paper's figures beside ours.

    cargo build --release -p veilset-cli
    bench/tables.py czzdl [--op count,...] [--log-n 12,16,20]    Tables 3, 5, 6 and 7 of CZZDL
    bench/tables.py cm20 [--log-n 16,18,20] [--net LAN,...]      Table 2 of CM20
    bench/tables.py krtw19 [--log-n 8,10,...,18]                 Tables 3, 4 and 5 of KRTW19
    bench/tables.py one-sided [--op union] [--log-n 16,20]       each protocol: CPU seconds, traffic, memory

Progress goes to standard error. (Table 2 of CZZDL, mqRPMT, is count without the last addition.)
"""
import argparse
import json
import subprocess
import sys

# CZZDL, one thread, Curve25519 (marked with a star in the paper), per log2 of the sizes: seconds LAN, seconds WAN, MB.
CZZDL = {
    "count": ("Table 5, PSI-card", {12: (0.27, 0.82, 0.27), 16: (3.51, 5.42, 4.46), 20: (54.89, 68.31, 71.30)}),
    "sum": ("Table 6, PSI-card-sum", {12: (0.31, 1.36, 0.37), 16: (3.73, 6.53, 5.75), 20: (57.44, 76.16, 95.30)}),
    "union": ("Table 7, PSU", {12: (0.30, 1.19, 0.41), 16: (3.55, 6.38, 6.48), 20: (55.48, 74.96, 103.31)}),
    "intersect": ("Table 3, PSI", {12: (0.29, 1.19, 0.41), 16: (3.56, 6.38, 6.48), 20: (55.11, 75.56, 103.31)}),
}

# CM20, Table 2, "Ours": the networks as typed, and per log2 of the sizes MB and seconds over each.
CM20_NETS = {
    "LAN": "20Gbps,0.1ms", "150": "150Mbps,80ms", "100": "100Mbps,80ms", "80": "80Mbps,80ms", "50": "50Mbps,80ms",
    "30": "30Mbps,80ms", "10": "10Mbps,80ms", "1": "1Mbps,80ms",
}
CM20 = {
    16: (5.34, (0.63, 1.71, 1.78, 1.87, 2.14, 2.66, 5.53, 47.4)),
    18: (21.7, (2.26, 3.01, 3.34, 3.77, 5.08, 7.53, 20.0, 192)),
    20: (87.6, (9.44, 10.4, 10.8, 11.5, 16.9, 27.1, 78.2, 772)),
    22: (358, (46.3, 49.2, 50.6, 51.1, 65.5, 107, 317, 3152)),
    24: (1442, (190, 200, 216, 234, 289, 431, 1277, 12717)),
}

# KRTW19, per log2 of the sizes. Table 3: seconds with 8 threads on the LAN. Table 4: with one thread, LAN and WAN.
# Table 5: with one thread on the LAN, seconds and MB, with and without PEQT.
KRTW19_LAN, KRTW19_WAN = "10Gbps,0.02ms", "400Mbps,40ms"
KRTW19_3 = {8: 0.57, 10: 0.66, 12: 0.83, 14: 1.15, 16: 2.65, 18: 10.42}
KRTW19_4 = {
    8: (0.66, 1.38), 10: (0.86, 1.73), 12: (1.42, 2.61), 14: (3.54, 6.96), 16: (12.41, 23.29), 18: (61.34, 102.5),
    20: (238.88, 406.15), 22: (1039.64, 1679.85),
}
KRTW19_5 = {
    8: (0.66, 0.65, 0.45, 0.41), 10: (0.86, 0.86, 2.05, 1.86), 12: (1.42, 1.41, 8.48, 7.72),
    14: (3.54, 3.51, 34.98, 31.80), 16: (12.41, 11.02, 144.65, 131.16), 18: (61.34, 49.12, 652.09, 600.62),
    20: (238.88, 229.22, 2693.30, 2470.10), 22: (1039.64, 1015.23, 11077.83, 10233.27),
}


class Bench:
    def __init__(self, args):
        self.args = args

    def __call__(self, op, protocol, log_n, net, *more, threads=1):
        command = [self.args.veilset, "bench", "--op", op, "--protocol", protocol, "--n", str(1 << log_n)]
        command += ["--threads", str(threads), "--net", net, "--json", *more]
        print(" ".join(command), file=sys.stderr)
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


    def kinds(self):
        """All that can be measured, from the program's own list: operation, protocol, group, against a malicious sender."""
        return json.loads(subprocess.run([self.args.veilset, "bench-kinds"], check=True, stdout=subprocess.PIPE).stdout)


def mb(result):
    return (result["bytes_receiver_to_sender"] + result["bytes_sender_to_receiver"]) / 1e6


def row(*cells):
    text = [f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in cells]
    print("| " + " | ".join(text) + " |", flush=True)


def header(*cells):
    row(*cells)
    print("|" + "---|" * len(cells))


def czzdl(bench, args):
    for op in (args.op or ",".join(CZZDL)).split(","):
        title, paper = CZZDL[op]
        print(f"\n`{op}` ({title})\n")
        header("n", "LAN s", "paper", "WAN s", "paper", "MB", "paper", "CPU s receiver", "CPU s sender", "RSS MB")
        for log_n in args.sizes or (12, 16, 20):
            lan = bench(op, "dh", log_n, "lan", "--one-sided")
            wan = bench(op, "dh", log_n, "wan")
            p_lan, p_wan, p_mb = paper.get(log_n, ("", "", ""))
            rss = round(max(lan["peak_rss_mb"], wan["peak_rss_mb"]))
            cpu = [lan[r + "_cpu_seconds"] for r in ("receiver", "sender")]
            row(f"2^{log_n}", lan["seconds"], p_lan, wan["seconds"], p_wan, mb(lan), p_mb, *cpu, rss)


def cm20(bench, args):
    nets = args.net.split(",") if args.net else list(CM20_NETS)
    header("n", "MB", "paper", *(f"{net} s (paper)" for net in nets))
    for log_n in args.sizes or (16, 18, 20):
        p_mb, p_seconds = CM20[log_n]
        paper = dict(zip(CM20_NETS, p_seconds))
        runs = [bench("intersect", "cm20", log_n, CM20_NETS[net]) for net in nets]
        cells = [f"{run['seconds']:.2f} ({paper[net]})" for net, run in zip(nets, runs)]
        row(f"2^{log_n}", mb(runs[0]), p_mb, *cells)


def krtw19(bench, args):
    sizes = args.sizes or (8, 10, 12, 14, 16, 18)
    print("\nTables 3 and 4 (`krtw19`; s of the slower party)\n")
    header("n", f"LAN, {args.threads} threads", "paper, 8", "LAN, 1 thread", "paper", "WAN, 1 thread", "paper")
    lan = {n: bench("union", "krtw19", n, KRTW19_LAN, "--one-sided") for n in sizes}
    for n in sizes:
        many = bench("union", "krtw19", n, KRTW19_LAN, threads=args.threads)["seconds"]
        wan = bench("union", "krtw19", n, KRTW19_WAN)["seconds"]
        p_lan, p_wan = KRTW19_4[n]
        row(f"2^{n}", many, KRTW19_3.get(n, "-"), lan[n]["seconds"], p_lan, wan, p_wan)
    print("\nTable 5 (one thread, LAN; with PEQT `krtw19`, without `krtw19-plain`)\n")
    header("n", "s with", "paper", "s without", "paper", "MB with", "paper", "MB without", "paper",
           "CPU s receiver, sender", "RSS MB")
    for n in sizes:
        plain = bench("union", "krtw19-plain", n, KRTW19_LAN)
        s_with, s_without, mb_with, mb_without = KRTW19_5[n]
        cpu = ", ".join(f"{lan[n][r + '_cpu_seconds']:.2f}" for r in ("receiver", "sender"))
        row(f"2^{n}", lan[n]["seconds"], s_with, plain["seconds"], s_without, mb(lan[n]), mb_with, mb(plain), mb_without,
            cpu, round(lan[n]["peak_rss_mb"]))


def one_sided(bench, args):
    header("", "n", "s, two-sided", "CPU s two-sided, receiver, sender", "CPU s alone, receiver, sender",
           "MB to sender, to receiver", "RSS MB")
    for kind in bench.kinds():
        op, protocol, malicious = kind["op"], kind["protocol"], kind["malicious_sender"]
        if args.op and op not in args.op.split(","):
            continue
        more = ["--group", kind["group"]] + (["--malicious-sender"] if malicious else [])
        name = f"{op} by {protocol} over {kind['group']}" + (" against a malicious sender" if malicious else "")
        for log_n in args.sizes or (16, 20):
            r = bench(op, protocol, log_n, "none", "--one-sided", *more)
            cpu = ["{:.2f}, {:.2f}".format(*(r[f"{kind}{role}_cpu_seconds"] for role in ("receiver", "sender")))
                   for kind in ("two_sided_", "")]
            traffic = f"{r['bytes_receiver_to_sender'] / 1e6:.1f}, {r['bytes_sender_to_receiver'] / 1e6:.1f}"
            row(name, f"2^{log_n}", r["seconds"], *cpu, traffic, round(r["peak_rss_mb"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tables = {"czzdl": czzdl, "cm20": cm20, "krtw19": krtw19, "one-sided": one_sided}
    parser.add_argument("tables", choices=tables)
    parser.add_argument("--log-n", dest="sizes", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--op")
    parser.add_argument("--net")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--veilset", default="target/release/veilset")
    args = parser.parse_args()
    tables[args.tables](Bench(args), args)


if __name__ == "__main__":
    main()
