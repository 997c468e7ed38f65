#!/bin/sh
# Every golden CUDA source ran on a GPU: its hash is in tests/gpu/last_run.json, unless
# docs/decisions.md names it as a debt.
cd "$(dirname "$0")/.." || exit 1
wrong=0 n=0
for file in tests/golden/cuda/*.cu; do
  hash=$(sha256sum "$file" | cut -d ' ' -f 1)
  n=$((n + 1))
  if ! grep -q "$hash" tests/gpu/last_run.json && ! grep -q "$file" docs/decisions.md; then
    echo "$file changed since the last run on a GPU (tests/gpu/run)"
    wrong=$((wrong + 1))
  fi
done
echo "$((n - wrong)) passed, $wrong failed"
[ "$wrong" = 0 ] && [ "$n" -gt 0 ]
