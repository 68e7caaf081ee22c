#!/usr/bin/env bash
# usage: refusals.sh BINARY GOLDEN [--update-golden]
# GOLDEN holds commands ("$ run nofile.tile") and what a user must see: the error text, exactly, and the exit code.
# Commands run in a copy of tests/tools/inputs with an empty cache; ROOT stands for the source tree.
# `$ KEY=VALUE run …` sets a variable; `$ moved run …` runs a copy of the binary that has nothing beside it.
set -u
binary=$(readlink -f "$1") golden=$(readlink -f "$2") update=${3:-}
root=$(readlink -f "$(dirname "$0")/../..")
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
cp -r "$root/tests/tools/inputs" "$work/inputs" && cd "$work/inputs" || exit 1
export XDG_CACHE_HOME=$work/cache HOME=$work
while IFS= read -r line; do
  case $line in
  '$ '*)
    printf '%s\n' "$line"
    line=${line//ROOT/$root}
    read -ra words <<< "${line#\$ }"
    program=$binary settings=()
    while [[ ${words[0]} == *=* ]]; do settings+=("${words[0]}"); words=("${words[@]:1}"); done
    if [ "${words[0]}" = moved ]; then
      mkdir -p "$work/bin" && cp "$binary" "$work/bin/tilewright"
      program=$work/bin/tilewright words=("${words[@]:1}")
    fi
    env "${settings[@]}" timeout 120 "$program" "${words[@]}" 2>&1 >"$work/out" </dev/null
    code=$?
    grep -E '^(check: |  WRONG|.*(error|note)\[)' "$work/out"
    printf 'exit %d\n\n' "$code"
    ;;
  '# '*) printf '%s\n' "$line" ;;
  esac
done < "$golden" | sed "s#$root#ROOT#g; s#$work#WORK#g" > "$work/got"
if [ "$update" = --update-golden ]; then cp "$work/got" "$golden"; exit 0; fi
diff -u "$golden" "$work/got" && echo "all refusals as written"
