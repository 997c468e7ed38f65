#!/usr/bin/env bash
# The reference kernels in the interpreter: every case against its oracle (the grid in a shuffled
# order, with the check for races), bitwise on whole numbers where a kernel is exact, and once more
# in the algebraic domain: as traced, after the tile passes and as scheduled, the same bits.
# KILN: the executable; KILN_SRC: the source folder.
set -u
KILN=${KILN:?the path of the kiln executable}
cd "${KILN_SRC:-$(dirname "$0")/../..}" || exit 1
passed=0 failed=0

# run FILE [options]: the cases of a file, each counted.
run() {
  local said code counts
  said=$("$KILN" test "$@" 2>&1 </dev/null)
  code=$?
  counts=$(tail -n 1 <<<"$said")
  if [[ $counts =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed ]]; then
    passed=$((passed + BASH_REMATCH[1]))
    failed=$((failed + BASH_REMATCH[2]))
    [ "$code" = 0 ] && [ "${BASH_REMATCH[2]}" = 0 ] && [ "${BASH_REMATCH[1]}" != 0 ] && return
  fi
  [ "$code" = 0 ] && failed=$((failed + 1))
  echo "FAIL kiln test $* (exit code $code)"
  grep -v '^PASS ' <<<"$said" | head -n 40
}

# Attention has to read like its formula: the forward kernel, from options to grid, in fewer than 60
# lines.
lines=$(sed -n '/^-- ---- forward ----/,/^-- ---- packed sequences ----/p' kernels_ref/attention.lua | wc -l)
if [ "$lines" -gt 30 ] && [ "$lines" -lt 60 ]; then
  passed=$((passed + 1))
else
  echo "FAIL attention forward has $lines lines"
  failed=$((failed + 1))
fi

for file in kernels_ref/*.lua; do
  run "$file" --on interp --exact
  run "$file" --domain algebraic
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
