#!/bin/sh
# Checks of the source tree: who includes whom, who may allocate, sizes, and what must not be in it.
# Every rule is a pattern of what breaks it; tests/check_rules.sh plants a break for each rule.
# KILN_SRC: the tree to look at.
set -eu
cd "${KILN_SRC:-$(dirname "$0")/..}"
results=$(mktemp) # one line a rule: rules run at the end of pipelines, in subshells
trap 'rm -f "$results"' EXIT

# rule NAME: reads what breaks the rule from stdin.
rule() {
  broken=$(cat)
  if [ -z "$broken" ]; then
    echo passed >>"$results"
    return 0
  fi
  echo failed >>"$results"
  echo "broken: $1"
  echo "$broken" | head -n 20 | sed 's/^/  /'
}

# Files of the product: what is tracked by git if this is a checkout, else everything but outputs.
files() {
  if [ -e .git ] && command -v git >/dev/null 2>&1; then
    git ls-files --cached --others --exclude-standard -- "$@"
  else
    find "$@" -type f 2>/dev/null | grep -vE '^(\./)?(build|\.kiln)/'
  fi | xargs -r ls -d 2>/dev/null || true # not those deleted but not yet committed
}

code() { files "$@" | grep -E '\.(c|h|def)$' || true; }

# in_files PATTERN: grep over the files named on stdin; nothing found is no error.
in_files() { xargs -r grep -nE "$1" /dev/null || true; }

# Comments and string literals blanked, line numbers kept; then PATTERN over what is left.
in_code() {
  xargs -r awk '
    FNR == 1 { comment = 0 }
    { line = $0; out = ""
      while (line != "") {
        if (comment) {
          at = index(line, "*/")
          if (!at) break
          line = substr(line, at + 2); comment = 0; continue
        }
        # Up to the next byte that may begin a comment or a literal, in one step.
        if (match(line, /[\/"\047]/) > 1) {
          out = out substr(line, 1, RSTART - 1); line = substr(line, RSTART); continue
        }
        if (!RSTART) { out = out line; break }
        if (substr(line, 1, 2) == "//") break
        if (substr(line, 1, 2) == "/*") { comment = 1; line = substr(line, 3); continue }
        c = substr(line, 1, 1)
        if (c != "/" && match(line, c == "\"" ? "^\"([^\"\\\\]|\\\\.)*\"" : "^\047([^\047\\\\]|\\\\.)*\047")) {
          out = out c c; line = substr(line, RLENGTH + 1); continue
        }
        out = out c; line = substr(line, 2)
      }
      print FILENAME ":" FNR ": " out }' |
    grep -E "^[^:]*:[0-9]+: $1" || true
}

# arrow FOLDER ALLOWED...: every quoted include in FOLDER must name an allowed folder.
arrow() {
  folder=$1
  shift
  allowed=$(echo "$@" | tr ' ' '|')
  code "$folder" | in_files '^ *# *include *"' |
    grep -vE "# *include *\"($allowed)/" | rule "$folder includes only: $*"
}

arrow base base
arrow ir ir base
arrow frontend frontend ir base
arrow codegen codegen ir base generated
arrow runtime runtime base
arrow autotune autotune ir codegen runtime base
arrow api api frontend codegen runtime ir base include autotune generated
arrow cli cli include
code base ir frontend codegen runtime autotune api cli include |
  in_files '# *include *["<]?.*(tests/|kernels_ref/|cmocka)' | rule "nothing includes from tests/ or kernels_ref/"
code base ir frontend codegen runtime autotune cli | grep -v '^cli/' |
  in_files '# *include *[<"](include/)?kiln\.h' | rule "the layers below api/ do not know kiln.h"
code codegen | grep '^codegen/emu' |
  in_files '# *include *".*layouts?\.h"' | rule "the emulator knows no layouts: its tables are its own"
code ir base runtime codegen | in_files '# *include *<(lua|lauxlib|lualib)' | rule "Lua is the frontend's"

libraries="base ir frontend codegen runtime autotune api include"
# shellcheck disable=SC2086  # a list of folders
{
  code $libraries | grep -v '^base/arena\.c$' |
    in_code '(.*[^A-Za-z0-9_.>])?(malloc|calloc|realloc|free|strdup|strndup|asprintf)[ ]*\(' |
    rule "memory comes from struct mem_alloc: the C allocator is named in base/arena.c alone"
  code $libraries | grep -v '^runtime/worker/' |
    in_code '(.*[^A-Za-z0-9_.>])?(exit|_exit|_Exit|abort|quick_exit|signal|sigaction|fork|vfork|system|popen)[ ]*\(' |
    rule "libraries neither end the process, nor take signals, nor fork"
  code $libraries |
    in_code '(.*[^A-Za-z0-9_.>])?(sprintf|gets|alloca|strtok|asctime|localtime|setlocale)[ ]*\(' |
    rule "no unbounded or process-wide C functions"
}

code base ir frontend codegen runtime autotune program api cli include tests bench |
  xargs -r wc -l | awk '$1 > 1500 && $2 != "total" { print $2 ": " $1 " lines" }' |
  rule "no file is longer than 1,500 lines"

{ code base ir frontend codegen runtime autotune program api cli include tests bench
  files scripts tests kernels_ref .ci | grep -E '\.(sh|py|lua|cmake|txt)$|^scripts/|^\.ci/' |
    grep -vE '^tests/(data|golden|fuzz|lua/official)/'; } | sort -u |
  LC_ALL=C xargs -r awk '
    /^ *"/ && FILENAME ~ /\.(c|h|def)$/ { next }     # a literal of Lua or CUDA C: its own lines
    length($0) > 100 { gsub(/[\200-\277]/, "") } # continuation bytes of UTF-8 take no column
    { most = FILENAME ~ /\.(c|h|def|lua|py|cmake|txt)$/ ? 100 : 120 } # shell: patterns, messages
    length($0) > most { print FILENAME ":" FNR ": " length($0) " columns" }' |
  rule "no line is longer than 100 columns"

code base ir frontend codegen runtime autotune program api cli include tests bench |
  in_files '(TODO|FIXME|XXX)' | grep -vE 'TODO\([0-9]+\)|XXX[A-Z]' | rule "a TODO has an issue's number"

code base ir frontend codegen runtime autotune program api cli include tests |
  xargs -r awk 'FNR == 1 && !/^\/[*\/]/ { print FILENAME }' |
  rule "every file says at its head what it is"

# Machine paths and package hosts. The patterns are broken up so that this file does not match.
files . | grep -vE '^tests/(data|fuzz)/|\.(png|gz|bin|cubin|fatbin)$' |
  in_files '(^|[^A-Za-z0-9_./-])/(wo''rk|ro''ot|ho''me)/[A-Za-z0-9_]' | rule "no paths of one machine"
files . | grep -vE '^tests/(data|fuzz)/|\.(png|gz|bin|cubin|fatbin)$' |
  in_files '(py''pi\.org|pythonho''sted|deb\.deb''ian\.org|archive\.ubu''ntu|index''-url|artifact''ory)' |
  rule "no registry's host is named"

if [ -e include/kiln.h ] && [ -e CMakeLists.txt ]; then
  header=$(sed -n 's/^#define KILN_VERSION_[A-Z]* \([0-9]*\)$/\1/p' include/kiln.h | tr '\n' '.')
  build=$(sed -n 's/^project(kiln VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
  if [ "$header" != "$build." ]; then echo "kiln.h: $header, CMakeLists.txt: $build"; fi |
    rule "kiln.h and the build agree on the version"
fi

# Tables: stable codes and names are unique.
if [ -e base/diags.def ]; then
  sed -n 's/^DIAG([A-Z_0-9]*, "\(K[0-9]*\)".*/\1/p' base/diags.def | sort | uniq -d |
    rule "diagnostic codes are unique"
  sed -n 's/^DIAG(\([A-Z_0-9]*\),.*/\1/p' base/diags.def | sort | uniq -d |
    rule "diagnostic names are unique"
  grep -E '^DIAG\(' base/diags.def | grep -vE '^DIAG\([A-Z_0-9]+, "K[0-9]{4}", "[^"]+"\)' |
    rule "every diagnostic has a code of four digits and a summary"
fi
for table in ir/*.def codegen/*.def base/*.def; do
  [ -e "$table" ] || continue
  sed -n 's/^\([A-Z_]*\)(\([A-Za-z_0-9]*\), *.*/\1 \2/p' "$table" | sort | uniq -d |
    rule "$table: each row's name is unique"
  grep -n -E '^[A-Z_]+\(' "$table" | sed -n 's/^\([0-9]*\):[A-Z_]*([A-Za-z_0-9]*, *"\([^"]*\)".*/\2/p' |
    sort | uniq -d | rule "$table: each row's text is unique"
done

failed=$(grep -c failed "$results" || true)
echo "$(grep -c passed "$results" || true) passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
