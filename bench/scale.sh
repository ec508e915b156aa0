#!/usr/bin/env bash
# The whole product at full size on this machine: a stream of KEYS rows of 56 characters imported
# through a pipe, a snapshot, restarts, lookups of keys that are there and of keys that are not, and
# the false-duplicate probability of the result. Prints time, peak memory and disk.
#
#   bench/scale.sh [KEYS]     default 1 500 000 000: some 16 GB of memory, at most 45 GB of disk
#
# Works in a directory under ${TMPDIR:-/var/tmp}, which is removed.
set -euo pipefail
cd "$(dirname "$0")/.."
keys=${1:-1500000000}
[[ $keys =~ ^[1-9][0-9]*$ ]] || { echo "usage: bench/scale.sh [KEYS]; KEYS is a number" >&2; exit 2; }

scripts/setup.sh >&2
mkdir -p build
cmake --preset release >build/release.configure.log 2>&1 || { cat build/release.configure.log >&2; exit 1; }
cmake --build --preset release --target firstseen scale_rows -- --quiet >&2
work=$(mktemp -d "${TMPDIR:-/var/tmp}/firstseen-scale-XXXXXX")
trap 'rm -rf "$work"' EXIT
python3 bench/scale.py build/release/firstseen build/release/bench/scale_rows "$work" "$keys"
