#!/bin/sh
# The tables of docs/performance.md are those generated from docs/data.
cd "$(dirname "$0")/.." || exit 1
command -v python3 >/dev/null 2>&1 || {
  echo "SKIP: python3 is not here"
  exit 77
}
exec scripts/performance --check
