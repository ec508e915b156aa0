#!/usr/bin/env bash
# Builds firstseen and runs its main job on an invented year, on a bare Debian 12:
# history into a set, the turn of the year's transactions into bill files, and the proof.
#
#   ./run.sh                       5 000 000 history rows, 200 000 transactions
#   HISTORY_ROWS=100000 TRANSACTIONS=10000 ./run.sh     a smaller year
#
# Everything is made new in ./out/demo. Exit 0 when the bill is verified.
set -euo pipefail
cd "$(dirname "$0")"
case "${1:-}" in
  "") ;;
  -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) echo "run.sh: unknown argument '$1'; see ./run.sh --help" >&2; exit 2 ;;
esac

history_rows=${HISTORY_ROWS:-5000000}
transactions=${TRANSACTIONS:-200000}
seed=${SEED:-1}
demo=out/demo
scripts=$PWD/scripts
started=$SECONDS
trap 'echo "run.sh: failed at line $LINENO: ${BASH_COMMAND%%$'\n'*}" >&2' ERR
say() { printf '\n== %s  [%d s]\n' "$*" $((SECONDS - started)); }
exec 3>&1
show() { # show COMMAND...: prints it even when its output goes elsewhere, and runs it
  printf '$ %s\n' "$*" >&3
  "$@"
}

say "Packages"
scripts/setup.sh

say "Build (release; the first time takes some minutes)"
mkdir -p build
cmake --preset release >build/release.configure.log 2>&1 || { cat build/release.configure.log >&2; exit 1; }
cmake --build --preset release --target firstseen -j "$(nproc)"
PATH=$PWD/build/release:$PATH
unset FIRSTSEEN_DATA FIRSTSEEN_KEY_FILE FIRSTSEEN_CONFIG
firstseen version

say "An invented year: $history_rows history rows, $transactions transactions"
rm -rf "$demo"
mkdir -p out
umask 077
mkdir "$demo"
show firstseen generate --seed "$seed" --history-rows "$history_rows" \
  --transactions "$transactions" --out "$demo/year"
cp firstseen.example.toml "$demo/firstseen.toml" # its paths are relative to where it lies
mkdir "$demo/inbox" "$demo/results"
cd "$demo"
results=results

say "A set, one bill a person and natural year"
show firstseen init --data data
show firstseen create --data data kyc --window year --fields name,id_no \
  --normalise trim,width,zero-width,name-dot,x-check-digit,id-15-to-18

say "The year's history, as exported from Hive; then its last week once more (gap import)"
columns=(--columns name,id_no,ds,biz_seq_no --time-column ds)
show firstseen import --data data kyc year/history "${columns[@]}" --json | tee $results/import.json
show firstseen import --data data kyc year/gap "${columns[@]}" --json >$results/gap.json

say "December 31 from noon on: transactions in, 5-minute bill files out"
cp year/transactions/2023-12-31/* inbox/
show firstseen bill run --config firstseen.toml --once --now 2024-01-01T00:02:00+08:00 --json \
  >$results/run1.json
say "January 1 until noon: a new year, everybody is billed again"
cp year/transactions/2024-01-01/* inbox/
show firstseen bill run --config firstseen.toml --once --now 2024-01-01T12:02:00+08:00 --json \
  >$results/run2.json

say "The bill files"
find bills -name 'bill_*.txt' | sort >$results/bill_files
printf '%d bill files, such as\n' "$(wc -l <$results/bill_files)"
sample=$(sed -n "$(($(wc -l <$results/bill_files) / 4))p" $results/bill_files)
ls "$sample" "$sample".*
head -n 5 "$sample"
echo ...
tail -n 2 "$sample"
(cd "$(dirname "$sample")" && sha256sum --check "$(basename "$sample").sha256")

say "The set"
show firstseen stats --data data
firstseen stats --data data --json >$results/stats.json

say "The proof: everything recomputed from files alone, full members compared"
rejected=$(sed -n 's/.*"rejected": \([0-9]*\).*/\1/p' $results/import.json $results/gap.json | paste -sd+)
show firstseen bill verify --config firstseen.toml --history year/history year/gap "${columns[@]}" \
  --history-rejected $((rejected)) --json >$results/verify.json || { cat $results/verify.json; exit 1; }

say "Against the truth that the generator knows"
xargs -d '\n' cat <$results/bill_files | grep -E '^[0-9]{20}\|' | cut -d '|' -f 1 | sort >$results/billed
awk -F, '$4 == "billable" { print $1 }' year/truth.csv | sort >$results/to_bill
find bills -name 'adjustments_*.txt' -exec cat {} + | grep -E '^[0-9]{20}\|' | cut -d '|' -f 1 |
  sort >$results/adjusted || true
awk -F, '$5 == 1 { print $1 }' year/truth.csv | sort >$results/to_adjust
cmp $results/billed $results/to_bill || { echo "run.sh: the bill files differ from the truth: diff $demo/$results/billed $demo/$results/to_bill" >&2; exit 1; }
cmp $results/adjusted $results/to_adjust || { echo "run.sh: the adjustments differ from the truth: diff $demo/$results/adjusted $demo/$results/to_adjust" >&2; exit 1; }
printf 'the same %d serials in bill files, each once; the same %d adjustments\n' \
  "$(wc -l <$results/billed)" "$(wc -l <$results/adjusted)"

say "Figures"
python3 "$scripts/show_figures.py" .

cat <<EOF

Done in $((SECONDS - started)) s. What next:
  - look around in ./$demo: bills/, done/, firstseen.toml, data/ (sets, and the key: data/key)
  - ./build/release/firstseen --help, and README.md for your own data
  - ./test.sh to test it
EOF
