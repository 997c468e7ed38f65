#!/bin/sh
# Every snippet of docs/tutorial is run and gives what is printed there; a broken page is noticed.
cd "${KILN_SRC:-$(dirname "$0")/../..}" || exit 1
KILN=$(realpath "${KILN:-build/debug/kiln}")
export KILN
passed=0 failed=0
count() { if [ "$1" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi; }

scripts/tutorial --check
count $?

# The checker itself, on the first page alone: each break is named.
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/docs/tutorial" "$tree/scripts"
cp scripts/tutorial "$tree/scripts/"
breaks() { # breaks 'sed script' 'pattern of the report'
  sed "$1" docs/tutorial/1-vector-add.md >"$tree/docs/tutorial/1-vector-add.md"
  "$tree/scripts/tutorial" --check >"$tree/said" 2>&1
  code=$?
  if [ -z "$2" ] && [ $code = 0 ]; then
    count 0
  elif [ -n "$2" ] && [ $code != 0 ] && grep -q -e "$2" "$tree/said"; then
    count 0
  else
    count 1
    echo "wrong: sed '$1' gave exit code $code and:"
    cat "$tree/said"
  fi
}
breaks '' ''
breaks '/max error/s/4.07/4.06/' ''
breaks 's/self-checked against/checked against/' 'run scripts/tutorial'
breaks 's/x + y, c.T/x - y, c.T/' 'FAIL add.lua'
breaks 's/^-    local y/-    local z/' 'add.lua does not have:'
breaks 's/^-- vector_add.lua/-- a vector/' 'no file has the part'
breaks 's/^\$ kiln show/$ false; echo/' 'exit code 0\|run scripts/tutorial'
breaks 's/^\$ kiln show.*/$ false/' 'exit code 1: false'
breaks 's/^```console/```/' 'a snippet without a language'
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
