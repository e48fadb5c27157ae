"""Packs the output of scripts/dist: an archive, a Debian package, a container image and a wheel.

The same input gives the same bytes: entries are sorted, belong to root, and have the time of the commit.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import io
import json
import lzma
import re
import stat
import subprocess
import tarfile
import zipfile
from collections import defaultdict
from datetime import datetime, timezone
from email.utils import format_datetime
from pathlib import Path

DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
PACKAGES = ("veilset-cli", "veilset-python")

CONTROL = """\
Package: veilset
Version: {version}
Architecture: {architecture}
Maintainer: {maintainer}
Installed-Size: {size}
Section: science
Priority: optional
Description: private set operations between organisations
 Two organisations or more combine lists without showing them to each other:
 intersections, unions, counts and sums. The program talks to its peers over
 mutually authenticated TLS, and to nobody else.
"""

COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: veilset
Comment: The program contains the packages listed in THIRD-PARTY, with their
 licences.

Files: *
Copyright: {year} the veilset authors
License: Apache-2.0
 On Debian systems, the text of the licence is in
 /usr/share/common-licenses/Apache-2.0.
"""

CHANGELOG = """\
veilset ({version}) unstable; urgency=medium

  * The changes are in CHANGELOG.md.gz.

 -- {maintainer}  {date}
"""

MAINTAINER = "The veilset maintainers <veilset@example.invalid>"


class Tar:
    """A tar file in memory."""

    def __init__(self, time: int) -> None:
        self.time = time
        self.entries: dict[str, tuple[int, bytes | None]] = {}

    def add(self, path: str, content: bytes, mode: int = 0o644) -> None:
        """Adds a file, and the folders that contain it."""
        for folder in list(Path(path).parents)[:-1]:
            self.entries.setdefault(f"{folder}", (0o755, None))
        self.entries[path] = (mode, content)

    def folder(self, path: str, mode: int) -> None:
        self.entries[path] = (mode, None)

    def bytes(self, prefix: str = "") -> bytes:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            for path, (mode, content) in sorted(self.entries.items()):
                entry = tarfile.TarInfo(prefix + path)
                entry.mtime, entry.mode, entry.uname, entry.gname = self.time, mode, "root", "root"
                if content is None:
                    entry.type = tarfile.DIRTYPE
                else:
                    entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content or b""))
        return out.getvalue()


def zipped(content: bytes) -> bytes:
    return gzip.compress(content, 9, mtime=0)


def archive(stage: Path, name: str, time: int) -> bytes:
    """Returns an archive of all files, in a folder with the archive's name."""
    tar = Tar(time)
    for file in sorted(stage.rglob("*")):
        if file.is_file():
            path = file.relative_to(stage).as_posix()
            tar.add(f"{name}/{path}", file.read_bytes(), 0o755 if path == "veilset" else 0o644)
    return zipped(tar.bytes())


def debian(stage: Path, arch: str, version: str, time: int) -> bytes:
    """Returns a Debian package: an `ar` archive of the format's version, the control files and the data."""
    data = Tar(time)
    data.add("usr/bin/veilset", (stage / "veilset").read_bytes(), 0o755)
    for page in (stage / "man").iterdir():
        data.add(f"usr/share/man/man1/{page.name}.gz", zipped(page.read_bytes()))
    for source, target in [
        ("veilset.bash", "bash-completion/completions/veilset"),
        ("veilset.fish", "fish/vendor_completions.d/veilset.fish"),
        ("_veilset", "zsh/vendor-completions/_veilset"),
    ]:
        data.add(f"usr/share/{target}", (stage / "completions" / source).read_bytes())
    documents = "usr/share/doc/veilset"
    date = datetime.fromtimestamp(time, timezone.utc)
    changelog = CHANGELOG.format(version=version, maintainer=MAINTAINER, date=format_datetime(date))
    data.add(f"{documents}/changelog.gz", zipped(changelog.encode()))
    data.add(f"{documents}/CHANGELOG.md.gz", zipped((stage / "CHANGELOG.md").read_bytes()))
    data.add(f"{documents}/copyright", COPYRIGHT.format(year=date.year).encode())
    data.add(f"{documents}/THIRD-PARTY.gz", zipped((stage / "THIRD-PARTY").read_bytes()))

    files = {path: content for path, (_, content) in sorted(data.entries.items()) if content is not None}
    size = sum(-(-len(content) // 1024) for content in files.values())
    sums = "".join(f"{hashlib.md5(content).hexdigest()}  {path}\n" for path, content in files.items())
    control = Tar(time)
    about = CONTROL.format(version=version, architecture=DEBIAN[arch], maintainer=MAINTAINER, size=size)
    control.add("control", about.encode())
    control.add("md5sums", sums.encode())

    out = b"!<arch>\n"
    for name, content in [
        ("debian-binary", b"2.0\n"),
        ("control.tar.xz", lzma.compress(control.bytes("./"), preset=9)),
        ("data.tar.xz", lzma.compress(data.bytes("./"), preset=9)),
    ]:
        out += f"{name:<16}{time:<12}{0:<6}{0:<6}{0o100644:<8o}{len(content):<10}`\n".encode()
        out += content + b"\n" * (len(content) % 2)
    return out


def image(stage: Path, arch: str, version: str, time: int) -> bytes:
    """Returns a container image with the program alone, in the OCI layout; `manifest.json` is for `docker load`."""
    layer = Tar(time)
    layer.add("usr/bin/veilset", (stage / "veilset").read_bytes(), 0o755)
    for document in ("LICENSE", "THIRD-PARTY"):
        layer.add(f"usr/share/doc/veilset/{document}", (stage / document).read_bytes())
    # Any user may run it. Identity, book and log are kept under HOME, where the data is mounted.
    layer.folder("tmp", 0o1777)
    layer.folder("work", 0o1777)

    out = Tar(time)

    def blob(content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        out.add(f"blobs/sha256/{digest}", content)
        return digest

    def described(content: bytes, kind: str) -> dict[str, object]:
        return {"mediaType": kind, "digest": f"sha256:{blob(content)}", "size": len(content)}

    def text(value: object) -> bytes:
        return json.dumps(value, sort_keys=True).encode()

    files = layer.bytes()
    created = datetime.fromtimestamp(time, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    config = text(
        {
            "architecture": DEBIAN[arch],
            "os": "linux",
            "created": created,
            "config": {
                "Entrypoint": ["/usr/bin/veilset"],
                "Env": ["HOME=/work", "PATH=/usr/bin"],
                "User": "65534:65534",
                "WorkingDir": "/work",
                "Labels": {
                    "org.opencontainers.image.licenses": "Apache-2.0",
                    "org.opencontainers.image.title": "veilset",
                    "org.opencontainers.image.version": version,
                },
            },
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(files).hexdigest()}"]},
            "history": [{"created": created, "created_by": "scripts/dist"}],
        }
    )
    kinds = "application/vnd.oci.image"
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{kinds}.manifest.v1+json",
        "config": described(config, f"{kinds}.config.v1+json"),
        "layers": [described(files, f"{kinds}.layer.v1.tar")],
    }
    index = {
        "schemaVersion": 2,
        "mediaType": f"{kinds}.index.v1+json",
        "manifests": [
            described(text(manifest), f"{kinds}.manifest.v1+json")
            | {
                "annotations": {"org.opencontainers.image.ref.name": version},
                "platform": {"architecture": DEBIAN[arch], "os": "linux"},
            }
        ],
    }
    loaded = [
        {
            "Config": f"blobs/sha256/{hashlib.sha256(config).hexdigest()}",
            "RepoTags": [f"veilset:{version}"],
            "Layers": [f"blobs/sha256/{hashlib.sha256(files).hexdigest()}"],
        }
    ]
    out.add("oci-layout", text({"imageLayoutVersion": "1.0.0"}))
    out.add("index.json", text(index))
    out.add("manifest.json", text(loaded))
    return zipped(out.bytes())


def wheel(stage: Path, built: Path, time: int) -> bytes:
    """Returns the wheel built by maturin, with the program as a script, and its manual pages and licences as data."""
    with zipfile.ZipFile(built) as package:
        files = {name: package.read(name) for name in package.namelist()}
    for name in files:
        # The list of components contains the path of the workspace's folder.
        if "/sboms/" in name:
            files[name] = files[name].replace(Path.cwd().as_uri().encode(), b"file:///veilset")
    (record,) = (name for name in files if name.endswith(".dist-info/RECORD"))
    data = record.replace(".dist-info/RECORD", ".data")
    program = f"{data}/scripts/veilset"
    files[program] = (stage / "veilset").read_bytes()
    for page in (stage / "man").iterdir():
        files[f"{data}/data/share/man/man1/{page.name}"] = page.read_bytes()
    for document in ("LICENSE", "THIRD-PARTY"):
        files[f"{data}/data/share/doc/veilset/{document}"] = (stage / document).read_bytes()

    lines = [f"{record},,\n"]
    del files[record]
    for name, content in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}\n")
    date = datetime.fromtimestamp(time, timezone.utc).timetuple()[:6]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as package:
        # The metadata of the wheel comes last, as the format recommends.
        for name, content in [*sorted(files.items(), key=lambda file: (".dist-info/" in file[0], file[0])), (record, "".join(lines).encode())]:
            entry = zipfile.ZipInfo(name, date)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (stat.S_IFREG | (0o755 if name == program else 0o644)) << 16
            package.writestr(entry, content)
    return out.getvalue()


def third_party(target: str, extra: list[str]) -> str:
    """Returns the components linked into the program or the Python package, and their licences, except Apache-2.0, which is
    ours too."""
    def cargo(*arguments: str) -> str:
        return subprocess.run(["cargo", *arguments, "--locked"], capture_output=True, check=True, text=True).stdout

    tree = ["--target", target, "--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"]
    packages = [f"--package={package}" for package in PACKAGES]
    linked = {tuple(line.split()[:2]) for line in cargo("tree", *packages, *tree).splitlines() if line}
    metadata = json.loads(cargo("metadata", "--format-version=1", f"--filter-platform={target}"))

    lines, texts = [], defaultdict(list)
    for package in sorted(metadata["packages"], key=lambda p: (p["name"], p["version"])):
        if package["source"] is None or (package["name"], f"v{package['version']}") not in linked:
            continue
        name = f"{package['name']} {package['version']}"
        licence = (package["license"] or "").replace("/", " OR ")
        lines.append(f"{name}: {licence}")
        if "Apache-2.0" in re.split(r" OR ", licence):
            continue
        folder = Path(package["manifest_path"]).parent
        found = [f for f in [*folder.glob("*"), *folder.glob("*/*")] if is_licence(f)]
        for file in sorted(found):
            texts[file.read_text(errors="replace").strip()].append(name)
    for argument in extra:
        name, _, file = argument.partition("=")
        lines.append(name)
        texts[Path(file).read_text().strip()].append(name)

    out = "veilset contains these packages. Where a licence may be chosen, Apache-2.0 is: see LICENSE.\n\n"
    out += "\n".join([*lines, "The standard library of Rust: MIT OR Apache-2.0"]) + "\n"
    for licence, names in sorted(texts.items(), key=lambda entry: entry[1]):
        out += f"\n{'=' * 100}\n{', '.join(dict.fromkeys(names))}\n\n{licence}\n"
    return out


def is_licence(file: Path) -> bool:
    return file.is_file() and re.match(r"(licen[cs]e|copying|copyright|notice|unlicense)", file.name, re.I) is not None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    licences = commands.add_parser("third-party", help="print what is linked, and its licences")
    licences.add_argument("target")
    licences.add_argument("extra", nargs="*", metavar="NAME=FILE")
    pack = commands.add_parser("pack", help="write the packages of the program in STAGE")
    pack.add_argument("stage", type=Path)
    pack.add_argument("arch", choices=sorted(DEBIAN))
    pack.add_argument("version")
    pack.add_argument("time", type=int)
    pack.add_argument("output", type=Path)
    whole = commands.add_parser("wheel", help="write a wheel with the program in STAGE")
    whole.add_argument("stage", type=Path)
    whole.add_argument("built", type=Path)
    whole.add_argument("time", type=int)
    whole.add_argument("output", type=Path)
    args = parser.parse_args()
    if args.command == "third-party":
        print(third_party(args.target, args.extra), end="")
        return
    if args.command == "wheel":
        (args.output / args.built.name).write_bytes(wheel(args.stage, args.built, args.time))
        return
    stage, arch, version, time, output = args.stage, args.arch, args.version, args.time, args.output
    name = f"veilset-{version}-{arch}-linux"
    (output / f"{name}.tar.gz").write_bytes(archive(stage, name, time))
    (output / f"veilset_{version}_{DEBIAN[arch]}.deb").write_bytes(debian(stage, arch, version, time))
    (output / f"veilset-{version}-{arch}-image.tar.gz").write_bytes(image(stage, arch, version, time))


main()
