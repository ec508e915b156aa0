#!/usr/bin/env bash
# Kills the program (kill -9) at random moments while it claims, CYCLES times over (default 10 000),
# and checks after each hundred that every answer it gave is still true. About an hour on 2 cores.
#
#   scripts/soak.sh [CYCLES]      FIRSTSEEN_SEED=N repeats a failure, which names its seed
set -euo pipefail
cd "$(dirname "$0")/.."
cycles=${1:-10000}
[[ $cycles =~ ^[1-9][0-9]*$ ]] || { echo "usage: scripts/soak.sh [CYCLES]; CYCLES is a number" >&2; exit 2; }

scripts/setup.sh
mkdir -p build
cmake --preset release >build/release.configure.log 2>&1 || { cat build/release.configure.log >&2; exit 1; }
cmake --build --preset release --target cli_test -- --quiet

started=$SECONDS
for ((done = 0; done < cycles; done += kills)); do
  kills=$((cycles - done < 100 ? cycles - done : 100))
  FIRSTSEEN_KILLS=$kills build/release/tests/cli_test \
    --gtest_filter=KillLong.ClaimsAnsweredBeforeAKillAreThere >build/soak.log 2>&1 || {
    tail -n 50 build/soak.log >&2
    echo "soak: FAULT after $done to $((done + kills)) kills" >&2
    exit 1
  }
  echo "soak: $((done + kills)) of $cycles kills, $((SECONDS - started)) s, no fault"
done
