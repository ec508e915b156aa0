#!/usr/bin/env bash
# firstseen beside what else one would keep such keys in: the same random keys for all, one run, one
# thread of work each. Installs what it needs and prints a table (Markdown) and build/peers.json.
#
#   bench/peers.sh [KEYS]       default 10 million; the largest peer needs about 150 bytes a key
#
# Works in a directory under ${TMPDIR:-/tmp}, which is removed.
set -euo pipefail
cd "$(dirname "$0")/.."
keys=${1:-10000000}
[[ $keys =~ ^[1-9][0-9]*$ ]] || { echo "usage: bench/peers.sh [KEYS]; KEYS is a number" >&2; exit 2; }

scripts/setup.sh bench/peers/packages.txt >&2
cmake --preset release -DFIRSTSEEN_PEERS=ON >build-peers.log 2>&1 || { cat build-peers.log >&2; exit 1; }
rm -f build-peers.log
cmake --build --preset release --target peers_bench -- --quiet >&2

work=$(mktemp -d "${TMPDIR:-/tmp}/firstseen-peers-XXXXXX")
trap 'rm -rf "$work"' EXIT
mapfile -t names < <(build/release/bench/peers_bench list)
: >"$work/lines"
for i in "${!names[@]}"; do
  echo "peers: $((i + 1)) of ${#names[@]}: ${names[$i]}" >&2
  FIRSTSEEN_PEERS_KEYS=$keys build/release/bench/peers_bench "$i" "$work/data" >>"$work/lines"
  rm -rf "$work/data"
done
python3 bench/peers/table.py "$work/lines" build/peers.json
