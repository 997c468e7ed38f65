#!/bin/sh
# scripts/tally counts what ctest ran: every kind of result, through ctest itself.
set -eu
src=${KILN_SRC:-$(cd "$(dirname "$0")/.." && pwd)}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

program() { # program NAME LINES EXIT
  printf '#!/bin/sh\ncat <<"END"\n%b\nEND\nexit %s\n' "$2" "$3" >"$1"
  chmod +x "$1"
  printf 'add_test(%s "%s/%s")\nset_tests_properties(%s PROPERTIES SKIP_RETURN_CODE 77)\n' \
    "$1" "$dir" "$1" "$1" >>CTestTestfile.cmake
}

program plain 'hello' 0                                            # 1 0 0
program broken 'oh' 1                                              # 0 1 0
program left 'SKIP: no GPU here' 77                                # 0 0 1
program silent '' 77                                               # 0 0 1
program some 'SKIP: two\nSKIP: two' 0                              # 0 0 2
program own '7 passed, 0 failed, 2 skipped' 0                      # 7 0 2
program own2 '3 passed, 2 failed' 1                                # 3 2 0
program leak '5 passed, 0 failed, 0 skipped\nERROR: leak' 1        # 5 1 0
program mocka '[==========] Running 4 test(s).\n[  PASSED  ] 4 test(s).' 0 # 4 0 0
program mocka2 '[  PASSED  ] 2 test(s).\n[  FAILED  ] tests: 3 test(s), listed below:\n[  FAILED  ] a' 3 # 2 3 0
program mocka3 '[  PASSED  ] 2 test(s).\n[  SKIPPED ] t: 1 test(s), listed below:\nSKIP: why' 0 # 2 0 1
program mocka4 '[  PASSED  ] 5 test(s).\nSKIP: returned early' 0      # 4 0 1
program killed 'x' '0; kill -9 $$'
sed -i 's/^exit 0; kill/kill/' killed                              # 0 1 0
ctest --parallel 2 >test.log 2>&1 || true
counts=$("$src/scripts/tally" "$dir" 2>reasons)
expect="28 8 8"
status=0
if [ "$counts" != "$expect" ]; then
  echo "expected $expect, counted $counts"
  cat reasons
  status=1
fi
for line in 'skipped: left: no GPU here' 'skipped: silent: no reason given' 'skipped: some: two (2 times)' \
  'failed: broken' 'failed: leak' 'failed: killed'; do
  if ! grep -qx "$line" reasons; then
    echo "not said: $line"
    status=1
  fi
done
exit $status
