#!/usr/bin/env python3
"""Measures tables of the papers again and prints them (Markdown) with the paper's figures beside ours.

    cargo build --release -p veilset-cli
    bench/tables.py czzdl [--table 2,...] [--log-n 12,16,20]     Tables 2 to 8 of CZZDL
    bench/tables.py cm20 [--log-n 16,18,20] [--net LAN,...]      Table 2 of CM20
    bench/tables.py krtw19 [--log-n 8,10,...,18]                 Tables 3, 4 and 5 of KRTW19
    bench/tables.py gnt23 [--parties 3,4,6,8] [--log-n 8,12,16]  Tables 3 and 4 of GNT23, and the other operations
    bench/tables.py one-sided [--op union] [--log-n 16,20]       each protocol: CPU seconds, traffic, memory
        [--avx2 PROGRAM] [--runs 3]                              beside a program that was built for AVX2

Progress goes to standard error.
"""
import argparse
import json
import subprocess
import sys

# CZZDL: the paper's figures for 2^12, 2^16 and 2^20 items (Table 4: 2^8, 2^9 and 2^10): seconds LAN, seconds WAN, MB. A
# row has our operation, protocol, group and number of threads. The paper marks P-256 with a diamond, compressed with a
# triangle, and Curve25519 with a star.
CZZDL_SIZES = {"4": (8, 9, 10)}
CZZDL = {
    "2": ("mqRPMT; ours is `count`, which adds up the bits", [
        ("count", "dh", "p256", 1, (0.50, 7.20, 114.16), (1.39, 9.68, 136.27), (0.52, 8.35, 133.6)),
        ("count", "dh", "p256", 2, (0.31, 3.89, 62.09), (1.14, 6.54, 86.60), (0.52, 8.35, 133.6)),
        ("count", "dh", "p256-compressed", 1, (0.50, 8.00, 128.00), (1.35, 10.15, 141.52), (0.27, 4.35, 69.6)),
        ("count", "dh", "p256-compressed", 2, (0.32, 5.05, 80.69), (1.18, 7.11, 94.19), (0.27, 4.35, 69.6)),
        ("count", "dh", "curve25519", 1, (0.26, 3.51, 54.85), (0.81, 5.41, 68.68), (0.26, 4.23, 67.66)),
        ("count", "dh", "curve25519", 2, (0.15, 1.79, 28.24), (0.75, 3.83, 41.38), (0.26, 4.23, 67.66)),
    ]),
    "3": ("PSI", [
        ("intersect", "dh", "p256", 1, (0.50, 7.24, 114.66), (1.71, 10.50, 142.45), (0.68, 10.61, 169.37)),
        ("intersect", "dh", "p256-compressed", 1, (0.55, 8.04, 128.18), (1.73, 11.02, 148.18), (0.42, 6.61, 105.23)),
        ("intersect", "dh", "curve25519", 1, (0.29, 3.56, 55.11), (1.19, 6.38, 75.56), (0.41, 6.48, 103.31)),
        ("intersect", "dh-psi", "curve25519", 1, (0.22, 3.39, 54.79), (0.92, 5.57, 69.31), (0.28, 4.57, 74.1)),
    ]),
    "4": ("PSI of small sets", [
        ("intersect", "dh", "curve25519", 1, (0.0419, 0.0695, 0.0993), (0.577, 0.5829, 0.6461), (0.0386, 0.0635, 0.1133)),
        ("intersect", "dh-psi", "curve25519", 1,
         (0.01649, 0.0318, 0.05691), (0.21042, 0.22733, 0.25232), (0.01848, 0.03668, 0.0728)),
    ]),
    "5": ("PSI-card", [
        ("count", "dh", "p256", 1, (0.49, 7.20, 114.31), (1.30, 9.68, 136.06), (0.53, 8.59, 137.31)),
        ("count", "dh", "p256-compressed", 1, (0.53, 8.00, 128.00), (1.35, 10.16, 141.31), (0.28, 4.58, 73.20)),
        ("count", "dh", "curve25519", 1, (0.27, 3.51, 54.89), (0.82, 5.42, 68.31), (0.27, 4.46, 71.30)),
    ]),
    "6": ("PSI-card-sum", [
        ("sum", "dh", "p256", 1, (0.51, 7.22, 113.66), (1.46, 9.68, 136.27), (0.65, 10.12, 161.40)),
        ("sum", "dh", "p256-compressed", 1, (0.57, 8.12, 129.66), (1.94, 11.83, 157.66), (0.39, 6.10, 97.34)),
        ("sum", "dh", "curve25519", 1, (0.31, 3.73, 57.44), (1.36, 6.53, 76.16), (0.37, 5.75, 95.30)),
    ]),
    "7": ("PSU", [
        ("union", "dh", "p256", 1, (0.52, 7.27, 114.44), (1.70, 10.56, 143.29), (0.69, 10.61, 169.37)),
        ("union", "dh", "p256-compressed", 1, (0.57, 8.04, 128.20), (1.76, 10.92, 148.15), (0.42, 6.61, 105.23)),
        ("union", "dh", "curve25519", 1, (0.30, 3.55, 55.48), (1.19, 6.38, 74.96), (0.41, 6.48, 103.31)),
    ]),
    "8": ("private-ID", [
        ("id", "dh", "p256", 1, (0.55, 7.28, 115.63), (5.34, 14.83, 163.43), (3.12, 16.91, 237.55)),
        ("id", "dh", "p256-compressed", 1, (0.65, 8.43, 134.16), (5.69, 15.68, 169.05), (2.85, 12.91, 173.50)),
        ("id", "dh", "curve25519", 1, (0.34, 3.78, 59.76), (5.04, 10.87, 94.89), (2.82, 12.74, 171.54)),
    ]),
    "-": ("not in the paper's tables", [
        (op, protocol, group, 1, (), (), ())
        for op, protocol, group in [
            ("share", "dh", "curve25519"), ("union", "sigma-dh", "curve25519"), ("count", "sigma-dh", "curve25519"),
            ("union", "poprf", "ristretto255"), ("intersect", "dh-psi", "p256"),
        ]
    ]),
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


# GNT23, Table 3, with one thread (Table 4 repeats n = 4): by the number of parties, and for 2^8, 2^12, 2^16 and 2^20 items
# of each, seconds LAN, seconds WAN, and MB of a party on average.
GNT23_LAN, GNT23_WAN = "10Gbps,0.02ms", "400Mbps,80ms"
GNT23_SIZES = (8, 12, 16, 20)
GNT23 = {
    3: ((2.34, 36.19, 601.18, 5175.56), (12.03, 52.38, 655.97, 9920.07), (1.52, 21.11, 344.83, 5517.28)),
    4: ((4.41, 69.64, 1147.32, 11468.34), (13.28, 94.21, 1214.65, 18937.01), (2.29, 31.88, 505.67, 8090.72)),
    6: ((10.62, 167.80, 2786.67, 30266.82), (36.72, 210.05, 2909.79, 45732.48), (3.83, 53.47, 848.28, 13572.48)),
    8: ((19.68, 312.52, 5176.67, 57776.16), (56.70, 371.11, 5356.24, 84535.25), (5.38, 75.12, 1191.67, 19066.72)),
}


class Bench:
    def __init__(self, args):
        self.args = args

    def __call__(self, op, protocol, log_n, net, *more, threads=1):
        command = [self.args.veilset, "bench", "--op", op, "--protocol", protocol, "--n", str(1 << log_n)]
        command += ["--threads", str(threads), "--net", net, "--json", *more]
        print(" ".join(command), file=sys.stderr)
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def mb(result):
    return (result["bytes_receiver_to_sender"] + result["bytes_sender_to_receiver"]) / 1e6


def row(*cells):
    text = [f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in cells]
    print("| " + " | ".join(text) + " |", flush=True)


def header(*cells):
    row(*cells)
    print("|" + "---|" * len(cells))


def czzdl(bench, args):
    def with_paper(ours, paper, at):
        return f"{ours:.3g} ({paper[at]:g})" if at < len(paper) else f"{ours:.3g}"

    for number in (args.table or ",".join(CZZDL)).split(","):
        title, rows = CZZDL[number]
        usual = CZZDL_SIZES.get(number, (12, 16, 20))
        sizes = [n for n in args.sizes or usual if n in usual]
        if not sizes:
            continue
        print(f"\n**{'Others' if number == '-' else 'Table ' + number}**, {title}\n")
        header("", "threads", "n", "LAN s", "WAN s", "MB", "RSS MB")
        for op, protocol, group, threads, *paper in rows:
            for log_n in sizes:
                lan, wan = (bench(op, protocol, log_n, net, "--group", group, threads=threads) for net in ("lan", "wan"))
                ours = (lan["seconds"], wan["seconds"], mb(lan))
                cells = [with_paper(o, p, usual.index(log_n)) for o, p in zip(ours, paper)]
                rss = round(max(lan["peak_rss_mb"], wan["peak_rss_mb"]))
                row(f"{op} by {protocol} over {group}", threads, f"2^{log_n}", *cells, rss)


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


def gnt23(bench, args):
    header("", "parties", "n", "LAN s (paper)", "WAN s (paper)", "MB of a party (paper)", "CPU s, leader, most of the others", "RSS MB")
    for op, protocol in (("union", "mpsu"), ("intersect", "mpsi"), ("count", "mpsi-ca")):
        if args.op and op not in args.op.split(","):
            continue
        for parties in [int(n) for n in (args.parties or "3,4,6,8").split(",")]:
            for log_n in args.sizes or (8, 12, 16):
                lan, wan = (bench(op, protocol, log_n, net, "--parties", str(parties)) for net in (GNT23_LAN, GNT23_WAN))
                paper = GNT23.get(parties) if op == "union" and log_n in GNT23_SIZES else None
                each = lan["parties"]
                moved = sum(party["sent"] + party["received"] for party in each) / 1e6 / parties
                ours = (lan["seconds"], wan["seconds"], moved)
                at = GNT23_SIZES.index(log_n) if paper else 0
                cells = [f"{o:.3g} ({paper[i][at]:g})" if paper else f"{o:.3g}" for i, o in enumerate(ours)]
                cpu = [party["cpu_seconds"] for party in each]
                rss = round(max(party["peak_rss_mb"] for party in each + wan["parties"]))
                row(f"{op} by {protocol}", parties, f"2^{log_n}", *cells, f"{cpu[0]:.2f}, {max(cpu[1:]):.2f}", rss)


# What stands for all protocols: operation, protocol, the sizes, and further options.
ONE_SIDED = [
    ("intersect", "vole", (20, 22)), ("intersect", "cm20", (16, 20)),
    ("intersect", "cm20", (16, 20), "--malicious-sender"), ("intersect", "dh-psi", (16, 20)),
    ("union", "osn", (16, 20)), ("union", "krtw19", (16, 20)), ("union", "krtw19-plain", (16, 18)),
    ("union", "dh", (16, 20)), ("count", "dh", (16,)), ("sum", "dh", (16,)), ("share", "dh", (16,)),
    ("id", "dh", (16,)), ("id", "osn", (18,)), ("union", "poprf", (14,)), ("union", "sigma-dh", (14,)),
    ("count", "sigma-dh", (14,)), ("count", "dc17", (10,)), ("union", "dc17", (10,)),
    ("intersect", "dh", (14,), "--group", "p256"), ("union", "dh", (14,), "--group", "p256-compressed"),
]


def one_sided(bench, args):
    """With --avx2, a second program that was built without the paths of AVX-512; the least of each figure of all runs."""
    programs = [args.veilset] + ([args.avx2] if args.avx2 else [])
    paths = ("", ", AVX2")[:len(programs)]
    header("", "n", "s, two-sided", *(f"CPU s alone{path}" for path in paths),
           *(f"s alone, 2 threads{path}" for path in paths), "MB to sender, to receiver", "RSS MB")
    for op, protocol, sizes, *more in ONE_SIDED:
        if args.op and op not in args.op.split(","):
            continue
        for log_n in args.sizes or sizes:
            runs = {}
            for program in programs:
                for threads in (1, 2):
                    command = Bench(argparse.Namespace(veilset=program))
                    runs[program, threads] = [
                        command(op, protocol, log_n, "none", "--one-sided", *more, threads=threads)
                        for _ in range(args.runs)
                    ]

            def least(program, threads, *names):
                best = [min(run[name] for run in runs[program, threads]) for name in names]
                return ", ".join(f"{figure:.2f}" for figure in best)

            r = runs[args.veilset, 1][0]
            row(f"{op} by {' '.join([protocol, *more[-1:]])}", f"2^{log_n}", least(args.veilset, 1, "seconds"),
                *(least(program, 1, "receiver_cpu_seconds", "sender_cpu_seconds") for program in programs),
                *(least(program, 2, "one_sided_receiver_seconds", "one_sided_sender_seconds") for program in programs),
                f"{r['bytes_receiver_to_sender'] / 1e6:.1f}, {r['bytes_sender_to_receiver'] / 1e6:.1f}",
                round(r["peak_rss_mb"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tables = {"czzdl": czzdl, "cm20": cm20, "krtw19": krtw19, "gnt23": gnt23, "one-sided": one_sided}
    parser.add_argument("tables", choices=tables)
    parser.add_argument("--log-n", dest="sizes", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--table")
    parser.add_argument("--op")
    parser.add_argument("--net")
    parser.add_argument("--parties")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--avx2")
    parser.add_argument("--veilset", default="target/release/veilset")
    args = parser.parse_args()
    tables[args.tables](Bench(args), args)


if __name__ == "__main__":
    main()
