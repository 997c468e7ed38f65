#!/bin/sh
# The rules of check_source.sh can fail: a tree with one break of each kind has every one of them
# reported under its rule, and a tree of like-looking files that break nothing has nothing reported.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
passed=0 failed=0
plan=$tree.plan
: >"$plan"

put() { # put FILE TEXT
  mkdir -p "$tree/$(dirname "$1")"
  if [ ! -e "$tree/$1" ]; then echo '/* A file. */' >"$tree/$1"; fi
  printf '%b\n' "$2" >>"$tree/$1"
}

breaks() { # breaks RULE-WORDS FILE TEXT [WHAT-THE-REPORT-SAYS]
  put "$2" "$3"
  echo "$1|${4:-$2}" >>"$plan"
}

breaks "base includes only" base/a.c '#include "ir/ir.h"'
breaks "ir includes only" ir/a.c '#include "codegen/cg.h"'
breaks "frontend includes only" frontend/a.c '#  include "runtime/rt.h"'
breaks "codegen includes only" codegen/a.h '#include "frontend/fe.h"'
breaks "runtime includes only" runtime/a.c '#include "ir/ir.h"'
breaks "runtime includes only" runtime/worker/a.c '#include "codegen/cg.h"'
breaks "cli includes only" cli/a.c '#include "api/api.h"'
breaks "nothing includes from tests/" api/a.c '#include "tests/unit/help.h"'
breaks "do not know kiln.h" runtime/b.c '#include <kiln.h>'
breaks "knows no layouts" codegen/emu_x.c '#include "ir/layout.h"'
breaks "knows no layouts" codegen/emu_y.h '#include "codegen/layouts.h"'
breaks "Lua is the frontend" codegen/a.c '#include <lua.h>'
breaks "memory comes from" ir/b.c 'static void f(void) { free(0); }'
breaks "memory comes from" ir/c.c 'static void *f(void) {\n  return malloc (3);\n}'
breaks "memory comes from" frontend/b.c 'static void *f(void) { return g("(") ? 0 : calloc(1, 2); }'
breaks "neither end the process" runtime/c.c 'static void f(void) { exit(1); }'
breaks "neither end the process" base/b.c 'static void f(void) { abort(); }'
breaks "neither end the process" runtime/d.c 'static int f(void) { return fork(); }'
breaks "process-wide C functions" api/b.c 'static void f(char *a) { /* x */ sprintf(a, "%d", 1); }'
breaks "a TODO has" ir/d.c '/* TO''DO: later */'
breaks "longer than 100 columns" ir/e.c "/* $(printf '%0100d' 0) */"
breaks "longer than 1,500 lines" ir/f.c "$(printf '%1501s' '' | sed 's/ /\\n/g')"
breaks "paths of one machine" docs/a.md 'see /wo''rk/main/x'
breaks "registry" scripts/a.sh 'pip --index''-url x'
breaks "diagnostic codes are unique" base/diags.def 'DIAG(A, "K0001", "a")\nDIAG(B, "K0001", "b")' K0001
breaks "diagnostic names are unique" base/diags.def 'DIAG(A, "K0002", "b")' A
breaks "four digits" base/diags.def 'DIAG(D, "K001", "a")' 'DIAG(D'
breaks "ops.def: each row's name is unique" ir/ops.def 'OP(ADD, "add")\nOP(ADD, "sub")' 'OP ADD'
breaks "ops.def: each row's text is unique" ir/ops.def 'OP(SUB, "add")' add
put include/kiln.h '#define KILN_VERSION_MAJOR 1\n#define KILN_VERSION_MINOR 2'
breaks "agree on the version" CMakeLists.txt 'project(kiln VERSION 1.3 LANGUAGES C)' '1.3'
mkdir -p "$tree/ir" && echo 'int x(void);' >"$tree/ir/g.h"
echo "every file says|ir/g.h" >>"$plan"

said=$(KILN_SRC=$tree "$here/check_source.sh" 2>&1 || true)
while IFS='|' read -r rule what; do
  # The lines under this rule's heading.
  if echo "$said" | awk -v rule="$rule" '/^broken: / { on = index($0, rule) > 0; next } on' |
    grep -qF "$what"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "wrong: '$rule' did not report $what"
  fi
done <"$plan"
rm -f "$plan"

rm -rf "${tree:?}"/*
put ir/a.c '/* free(p) and exit(1) and sprintf(a, b) in a comment\n   free(p); */'
put ir/b.c 'static const char *f(void) {\n  return "malloc(3) \\" free(1)"; /* free(2) */\n}'
put ir/c.c 'static void f(struct x *x) { x->free(x); arena_free(x); my_exit(1); }'
put ir/d.c '#include "ir/ir.h"\n#include "base/mem.h"\n#include <string.h>'
put ir/e.c "/* $(printf '%087d' 0) ä€ä€ä€ */"
put codegen/a.c '#include "generated/emitter_version.h"'
put base/a.c '/* TO''DO(12): later; XX''XH is a name */'
put base/diags.def 'DIAG(A, "K0001", "a")\nDIAG(B, "K0002", "b")'
put cli/a.c 'int main(void) { return malloc(3) == 0; }'
said=$(KILN_SRC=$tree "$here/check_source.sh" 2>&1 || true)
case $said in
  *broken:*)
    failed=$((failed + 1))
    echo "wrong: reported without reason: $said"
    ;;
  *) passed=$((passed + 1)) ;;
esac

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
