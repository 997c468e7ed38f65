# Helpers of the scripts; sourced.
# shellcheck shell=sh
KILN_ROOT=$(cd "$(dirname "$0")/.." && pwd)

say() { printf '%s: %s\n' "${0##*/}" "$*"; }

die() { # first the reason, then lines that help
  printf '%s: %s\n' "${0##*/}" "$1" >&2
  shift
  for line; do [ -z "$line" ] || printf '  %s\n' "$line" >&2; done
  exit 1
}

relative() { echo "${1#"$KILN_ROOT/"}"; }

megabytes() { echo "$1" | awk '{ printf "%.1f MB", $1 / 1e6 }'; }

multiarch() { echo "$(uname -m)-linux-gnu"; }

jobs() { nproc 2>/dev/null || echo 2; }

# version_at_least 3.25.1 3 22
version_at_least() {
  echo "$1" | awk -F. -v a="$2" -v b="$3" '{ exit !($1 > a || ($1 == a && $2 >= b)) }'
}

# The formatter of the one major version that .clang-format is pinned to, or nothing.
find_clang_format() {
  for tool in clang-format-14 clang-format; do
    if "$tool" --version 2>/dev/null | grep -q 'version 14\.'; then
      echo "$tool"
      return
    fi
  done
}

# The project's C sources, one a line; works without git too.
source_files() {
  find base ir frontend codegen runtime api cli include autotune program tests bench \
    -name '*.[ch]' -type f 2>/dev/null | sort
}
