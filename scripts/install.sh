#!/usr/bin/env bash
# Installs the Debian packages the build and the tests need (scripts/packages.txt); does nothing when all are there.
set -euo pipefail
cd "$(dirname "$0")/.."
mapfile -t packages < <(grep -v '^#' scripts/packages.txt)
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
if ((${#missing[@]})); then
  echo "installing: ${missing[*]}"
  as_root=()
  [ "$(id -u)" = 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
