#!/usr/bin/env bash
# Sets up, builds and runs the tests. Safe to run again; the second time is quick.
#
#   ./test.sh          quick: unit and end-to-end tests, then the same under sanitizers (<= 20 min)
#   ./test.sh --full   adds the long suites: soaks, every-fault loops, fuzzing (<= 75 min)
#
# Exit 0 when everything passed. FIRSTSEEN_SEED=N repeats a randomised failure.
set -euo pipefail
cd "$(dirname "$0")"

full=no
case "${1:-}" in
  "") ;;
  --full) full=yes ;;
  -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) echo "test.sh: unknown argument '$1'; see ./test.sh --help" >&2; exit 2 ;;
esac

started=$SECONDS
say() { printf '\n== %s  [%d min %02d s]\n' "$*" $(((SECONDS - started) / 60)) $(((SECONDS - started) % 60)); }
failed=()
step() { # step NAME COMMAND...: runs it, remembers a failure, goes on
  local name=$1
  shift
  say "$name"
  if ! "$@"; then
    failed+=("$name")
    echo "test.sh: FAILED: $name" >&2
  fi
}
build() { # build PRESET [TARGET...]
  local preset=$1
  shift
  cmake --preset "$preset" >"build/$preset.configure.log" 2>&1 || {
    cat "build/$preset.configure.log" >&2
    return 1
  }
  cmake --build --preset "$preset" ${@:+--target "$@"} -- --quiet
}
run_tests() { # run_tests PRESET LABEL [ROOM...]
  local preset=$1 label=$2
  shift 2
  local rooms
  rooms=$(IFS='|'; echo "$*")
  ctest --test-dir "build/$preset" -L "$label" ${rooms:+-R "^($rooms)/"} -j "$(nproc)" \
    --output-on-failure --no-tests=error --progress >"build/$preset.$label.log" 2>&1 || {
    grep -v '^\[' "build/$preset.$label.log" | tail -n 200 >&2
    return 1
  }
  tail -n 6 "build/$preset.$label.log"
}

say "Packages"
scripts/setup.sh
mkdir -p build

step "House rules" scripts/check_house.sh
step "Build: release" build release all
step "Tests: release" run_tests release quick

# The rooms where threads meet run under ThreadSanitizer; all of them under ASan + UBSan.
step "Build: AddressSanitizer and UndefinedBehaviorSanitizer" build asan all_tests
step "Tests: AddressSanitizer and UndefinedBehaviorSanitizer" run_tests asan quick
threaded=(base exact engine store ingest)
step "Build: ThreadSanitizer" build tsan "${threaded[@]/%/_test}"
step "Tests: ThreadSanitizer" run_tests tsan quick "${threaded[@]}"

if [ "$full" = yes ]; then
  step "Long tests: release" run_tests release long
  step "Fuzzing" scripts/fuzz.sh 60
fi

say "Result"
if [ ${#failed[@]} -gt 0 ]; then
  printf 'test.sh: failed: %s\n' "${failed[@]}" >&2
  echo "Logs are in build/*.log. One test by name: build/release/tests/ROOM_test --gtest_filter=NAME" >&2
  exit 1
fi
passed=$(cat build/*.quick.log build/*.long.log 2>/dev/null | grep -c ' Passed ' || true)
echo "$passed passed, 0 failed"
echo "Next: ./run.sh shows the main job; ./test.sh --full adds the long suites."
