#!/usr/bin/env bash
# Installs what scripts/packages.txt and the lists given name, where it is missing. Safe to run
# again.
#
#   scripts/setup.sh [LIST...]
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t wanted < <(grep -hv '^#' scripts/packages.txt "$@" | grep .)
missing=()
for package in "${wanted[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: all ${#wanted[@]} packages are installed"
  exit 0
fi

sudo=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || {
    echo "setup: need root to install: ${missing[*]}" >&2
    echo "setup: run as root, or install sudo, or install these packages yourself" >&2
    exit 1
  }
  sudo=(sudo)
fi
command -v apt-get >/dev/null || {
  echo "setup: no apt-get here; this script knows Debian 12. Install by hand: ${missing[*]}" >&2
  exit 1
}
echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${sudo[@]}" apt-get update -qq
"${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
echo "setup: done"
