#!/usr/bin/env bash
# House rules that a compiler does not check. Exit 1 when one is broken; long files are only listed.
#
#   - a room includes only rooms on lower floors (see docs/architecture.md)
#   - public headers include nothing but public headers and libraries
#   - locks come from base/mutex.h, files are opened through base/file.h
#   - no TODO and the like, no code switched off
set -euo pipefail
cd "$(dirname "$0")/.."

# From the ground up.
floors=(base keys exact engine store ingest billing cli)
declare -A allowed
below=""
for room in "${floors[@]}"; do
  below="$below $room"
  allowed[$room]=$below
done
allowed[sample]="base sample" # invented input: independent of what it tests
allowed[cli]="${allowed[cli]} sample"

failed=0
complain() {
  echo "check_house: $1" >&2
  failed=1
}

for directory in src/*/; do
  room=$(basename "$directory")
  if [ -z "${allowed[$room]:-}" ]; then
    complain "src/$room is on no floor; add it to scripts/check_house.sh and docs/architecture.md"
    continue
  fi
  while IFS=: read -r file line text; do
    target=$(sed -E 's|.*"([^"/]+)/.*|\1|' <<<"$text")
    [ "$target" = firstseen ] && continue
    [ -d "src/$target" ] || continue # a library's header
    case " ${allowed[$room]} " in
      *" $target "*) ;;
      *) complain "$file:$line: $room may not include $target (it is not below)" ;;
    esac
  done < <(grep -rnHE '^#include "[^"/]+/' "$directory" --include='*.h' --include='*.cc')
done

while IFS=: read -r file line _; do
  complain "$file:$line: a public header includes a room"
done < <(grep -rnHE '^#include "' include --include='*.h' | grep -v '"firstseen/' || true)

refuse() { # refuse PATTERN WHERE-NOT MESSAGE
  while IFS=: read -r file line _; do
    complain "$file:$line: $3"
  done < <(grep -rnHE "$1" src include tests bench --include='*.h' --include='*.cc' |
    grep -vE "$2" || true)
}
refuse '\b(TODO|FIXME|XXX|HACK)\b' '^$' 'unfinished work; finish it or say why not in a comment'
refuse '^#if 0' '^$' 'code switched off; remove it'
refuse 'using namespace std\b' '^$' 'no using namespace std'
refuse '\bstd::(mutex|shared_mutex|condition_variable)\b|\babsl::Mutex\b' \
  '^src/base/mutex\.h|^(tests|bench)/|^[^:]+:[0-9]+: *//' 'locks come from base/mutex.h'
refuse '\b(std::(o|i)?fstream|fopen|std::fopen)\b' '^(tests|bench)/' 'files are opened through base/file.h'

while read -r lines file; do
  [ "$file" = total ] || [ "$lines" -le 500 ] || echo "check_house: $file has $lines lines; why?"
done < <(find src include -name '*.h' -o -name '*.cc' | xargs wc -l)

[ $failed -eq 0 ] && echo "check_house: the house is in order"
exit $failed
