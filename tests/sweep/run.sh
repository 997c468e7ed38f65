#!/usr/bin/env bash
# bench/sweep on a fake GPU (KILN_FAKE): every figure is kept, refused and wrong schedules are told from
# measured ones, nothing is measured twice, and what was cut off goes on.
set -u
SRC=${KILN_SRC:-$(cd "$(dirname "$0")/../.." && pwd)}
if [ -z "${KILN_FAKE:-}" ]; then
  echo 'SKIP: the fake GPU needs cmocka (libcmocka-dev)'
  exit 77
fi
export KILN=$KILN_FAKE
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
cd "$WORK" || exit 1
cp "$SRC/tests/sweep/twice.lua" .
passed=0 failed=0

check() { # NAME CONDITION...
  local name=$1
  shift
  if "$@"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAIL $name"
    tail -n 20 log
    cat out.jsonl
  fi
}
sweep() {
  timeout 100 "$SRC/bench/sweep" twice.lua --out out.jsonl "$@" >log 2>&1
}
lines() { [ "$(wc -l <out.jsonl)" = "$1" ]; }
count() { [ "$(grep -c "$2" out.jsonl)" = "$1" ]; }

# Three combinations and the default; `legal` refuses B=128.
sweep --shapes M=64,N=128 --tune B=32,64,128
check 'the run' [ $? = 0 ]
check 'one line a figure' lines 4
check 'measured' count 3 '"status": "ok".*"level": "verified".*"flushed": {"rounds": [0-9]*, "us": 25'
check 'refused, with the reason' count 1 '"set": "B=128".*"status": "refused", "message": ".*legal'
check 'what it was measured on' count 4 '"date": "20.*"commit": "[0-9a-f]*".*"gpu": "Fake GPU".*"driver"'
check 'beside a copy' count 3 '"peer": "copy".*"ratio_flushed": 0\.[78]'
check 'the table' grep -q '^| *M=64,N=128 | 3, 1 | 25.00 | 0.800, ' log

# The same once more: nothing to do. Another shape: that alone.
sweep --shapes M=64,N=128 --tune B=32,64,128
check 'nothing twice' lines 4
sweep --shapes M=64,N=128 --shapes M=128,N=64 --tune B=32
check 'what is new' lines 6

# A line that was cut off is no figure, and the next ones stand on lines of their own.
head -c -20 out.jsonl >cut && mv cut out.jsonl
sweep --shapes M=64,N=128 --shapes M=128,N=64 --tune B=32
check 'the one that was cut off' count 6 '}$'
check 'and nothing else' lines 7

# Wrong results are no figures.
KILN_FAKE_WRONG=1 sweep --shapes M=8,N=8
check 'wrong' count 1 '"shape": "M=8,N=8".*"status": "wrong", "message": ".*wrong'

# No time: nothing is measured, and it says so.
sweep --shapes M=16,N=64 --tune B=32,64 --limit-seconds 0.000001
check 'the limit' grep -q '^stopped: --limit-seconds' log
check 'nothing past the limit' count 0 '"shape": "M=16,N=64"'

# Interrupted on its way: what was measured is kept, and the rest follows.
"$SRC/bench/sweep" twice.lua --out out.jsonl --jobs 1 --tune B=32,64 --shapes M=16,N=64 \
  --shapes M=24,N=64 --shapes M=32,N=64 --shapes M=40,N=64 >log 2>&1 &
pid=$!
for _ in $(seq 200); do
  grep -q '"shape": "M=16,N=64"' out.jsonl && break
  sleep 0.05
done
kill -TERM $pid
wait $pid
check 'its exit code' [ $? = 130 ]
check 'what it says' grep -q '^stopped: interrupted' log
before=$(wc -l <out.jsonl)
sweep --tune B=32,64 --shapes M=16,N=64 --shapes M=24,N=64 --shapes M=32,N=64 --shapes M=40,N=64
for m in 16 24 32 40; do
  check "M=$m is whole" count 3 "\"shape\": \"M=$m,N=64\".*\"status\": \"ok\""
done
check 'something was left to do' [ "$before" -lt "$(wc -l <out.jsonl)" ]

# The same seed gives the same shapes; another, others.
"$SRC/bench/sweep" twice.lua --shapes random --seed 1a2b3c4d --out a.jsonl --limit-seconds 0.000001 >log 2>&1
check 'random shapes' [ $? = 0 ]
check 'unknown shapes' grep -q 'expected DIM=SIZE' <("$SRC/bench/sweep" twice.lua --shapes frob 2>&1)
"$SRC/bench/sweep" --report --out out.jsonl >log 2>&1
check 'the report' grep -q 'figures; the default is at 1.000' log

# bench/bars: the fake GPU has none of its kernels: each case is a line that says so, once.
bars() {
  "$SRC/bench/bars" --out "$WORK/out.jsonl" "$@" >log 2>&1
}
rm out.jsonl
bars small
check 'failures are told' [ $? = 1 ]
check 'a line a case' lines 2
check 'with the reason' count 2 '"status": "failed", "message": "[^"]'
bars small
check 'no case twice' lines 2
# What there is, read: means of ratios against what is asked.
row() { # SHAPE RATIO
  printf '{"file": "kernels_ref/gemm.lua", "kernel": "gemm", "shape": "%s", "set": "", "const": "", ' "$1"
  printf '"absent": "bias,R", "layout": "", "fused": "", "commit": "c", "gpu": "g", "status": "ok", '
  printf '"result": {"flushed": {"us": 9}, "ratio_flushed": %s, "ratio_low": 1, "ratio_high": 1, ' "$2"
  printf '"ratio_graph": 1.1}}\n'
}
{ row M=1024,N=1024,K=1024 0.5 && row M=512,N=4096,K=4096 2.0; } >out.jsonl
bars --report small
check 'the report of bars' [ $? = 0 ]
check 'its mean' grep -q 'mean, flushed: 1.000 (asked 0.98: yes)' log
check 'its least' grep -q 'least, flushed: 0.500 (asked 0.98: no); 2 of 2 measured' log
check 'no such group' grep -q 'there is no group frob' <("$SRC/bench/bars" frob 2>&1)

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
