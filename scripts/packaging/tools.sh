# Tools that build for other targets: a C compiler, cargo-zigbuild and maturin, installed into target/dist-tools at the versions
# in requirements.txt. To be sourced at the root of the repository. Sets `target`, `tools` and PATH.

fail() {
  echo "${0##*/}: $*" >&2
  exit 1
}

target=${CARGO_TARGET_DIR:-$PWD/target}
mkdir -p "$target"
target=$(cd "$target" && pwd)
tools=$target/dist-tools
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || fail "Python 3.10 or newer is needed"
[ -x "$tools/bin/python" ] || "$python" -m venv "$tools" || fail "Python's venv is missing (Debian: python3-venv)"
"$tools/bin/pip" install --quiet --requirement scripts/packaging/requirements.txt
sysroot=$(rustc --print sysroot) || fail "Rust is missing"
export CARGO_TARGET_DIR=$target PATH=$tools/bin:$PATH

# Installs the standard library for each target if it is missing.
need_std() {
  local triple
  for triple in "$@"; do
    [ -d "$sysroot/lib/rustlib/$triple/lib" ] || rustup target add "$triple" ||
      fail "Rust's standard library for $triple is missing: install it, with rustup target add or from your system"
  done
}

# Prints the emulator for programs of architecture $1, or nothing if this machine runs them itself.
emulator() {
  [ "$1" = "$(uname -m)" ] || command -v "qemu-$1-static" || command -v "qemu-$1" ||
    fail "programs for $1 need qemu-user here (Debian: qemu-user-static)"
}
