#!/usr/bin/env bash
# Builds the fuzz targets with Clang and runs each for SECONDS (default 60), two at a time, from its
# corpus in tests/fuzz/corpus. A crash is printed with the input that repeats it.
#
#   scripts/fuzz.sh [SECONDS] [TARGET...]
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
shift || true

mkdir -p build/fuzz-work
cmake --preset fuzz >build/fuzz.configure.log 2>&1 || { cat build/fuzz.configure.log >&2; exit 1; }
cmake --build --preset fuzz --target all_fuzz -- --quiet

targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(cd tests/fuzz && ls ./*_fuzz.cc | sed 's|^\./||; s|\.cc$||')
one() {
  local name=$1 seconds=$2
  local work=build/fuzz-work/$name
  mkdir -p "$work" "tests/fuzz/corpus/${name%_fuzz}"
  if build/fuzz/tests/"$name" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=3000 \
    -artifact_prefix="$work/" -print_final_stats=1 "$work" "tests/fuzz/corpus/${name%_fuzz}" \
    >"$work.log" 2>&1; then
    echo "fuzz: $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$work.log") runs, no fault"
  else
    tail -n 40 "$work.log" >&2
    echo "fuzz: $name: FAULT; repeat with build/fuzz/tests/$name FILE, files in $work/" >&2
    return 1
  fi
}
export -f one
printf '%s\n' "${targets[@]}" | xargs -P 2 -I{} bash -c "one {} $seconds"
