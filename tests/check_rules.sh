#!/bin/sh
# The rules of check_source.sh can fail: for each, a tree of one file that breaks it is reported, and
# a like-looking one that does not break it is not.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
passed=0 failed=0

# verdict FILE TEXT: what check_source.sh says about a tree of just this file.
verdict() {
  rm -rf "${tree:?}"/* && mkdir -p "$tree/$(dirname "$1")"
  printf '/* A file. */\n%b\n' "$2" >"$tree/$1"
  KILN_SRC=$tree "$here/check_source.sh" 2>&1 || true
}

note() { # note OK WHAT
  if [ "$1" = 1 ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "wrong: $2"
  fi
}

breaks() { # breaks RULE-WORDS FILE TEXT
  case $(verdict "$2" "$3") in
    *"broken: "*"$1"*) note 1 "" ;;
    *) note 0 "'$1' did not see: $2: $3" ;;
  esac
}

fine() { # fine FILE TEXT
  said=$(verdict "$1" "$2")
  case $said in
    *broken:*) note 0 "reported without reason: $1: $2: $said" ;;
    *) note 1 "" ;;
  esac
}

breaks "base includes only" base/a.c '#include "ir/ir.h"'
breaks "ir includes only" ir/a.c '#include "codegen/cg.h"'
breaks "frontend includes only" frontend/a.c '#  include "runtime/rt.h"'
breaks "codegen includes only" codegen/a.h '#include "frontend/fe.h"'
breaks "runtime includes only" runtime/a.c '#include "ir/ir.h"'
breaks "runtime includes only" runtime/worker/a.c '#include "codegen/cg.h"'
breaks "cli includes only" cli/a.c '#include "api/api.h"'
breaks "nothing includes from tests/" api/a.c '#include "tests/unit/help.h"'
breaks "do not know kiln.h" runtime/a.c '#include <kiln.h>'
breaks "Lua is the frontend" codegen/a.c '#include <lua.h>'
breaks "memory comes from" ir/a.c 'static void f(void) { free(0); }'
breaks "memory comes from" ir/a.c 'static void *f(void) {\n  return malloc (3);\n}'
breaks "memory comes from" frontend/a.c 'static void *f(void) { return g(3) ? 0 : calloc(1, 2); }'
breaks "neither end the process" runtime/a.c 'static void f(void) { exit(1); }'
breaks "neither end the process" base/a.c 'static void f(void) { abort(); }'
breaks "neither end the process" runtime/a.c 'static int f(void) { return fork(); }'
breaks "unbounded" api/a.c 'static void f(char *a, char *b) { strcpy(a, b); }'
breaks "a TODO has" ir/a.c '/* TO''DO: later */'
breaks "longer than 100 columns" ir/a.c "/* $(printf '%0100d' 0) */"
breaks "longer than 1,500 lines" ir/a.c "$(printf '%1501s' '' | sed 's/ /\\n/g')"
breaks "paths of one machine" docs/a.md 'see /wo''rk/main/x'
breaks "registry" scripts/a.sh 'pip --index''-url x'
breaks "diagnostic codes are unique" base/diags.def 'DIAG(A, "K0001", "a")\nDIAG(B, "K0001", "b")'
breaks "diagnostic names are unique" base/diags.def 'DIAG(A, "K0001", "a")\nDIAG(A, "K0002", "b")'
breaks "four digits" base/diags.def 'DIAG(A, "K001", "a")'
breaks "row's name is unique" ir/ops.def 'OP(ADD, "add")\nOP(ADD, "sub")'
breaks "row's text is unique" ir/ops.def 'OP(ADD, "add")\nOP(SUB, "add")'
rm -rf "${tree:?}"/* && mkdir "$tree/ir" && echo 'int x(void);' >"$tree/ir/a.h"
case $(KILN_SRC=$tree "$here/check_source.sh" 2>&1 || true) in
  *"broken: every file says"*) note 1 "" ;;
  *) note 0 "a file without a head comment was not seen" ;;
esac

fine ir/a.c '/* free(p) and exit(1) and strcpy(a, b) in a comment */'
fine ir/a.c 'static const char *f(void) {\n  return "malloc(3)";\n}'
fine ir/a.c 'static void f(struct x *x) { x->free(x); arena_free(x); my_exit(1); }'
fine ir/a.c '#include "ir/ir.h"\n#include "base/mem.h"\n#include <string.h>'
fine codegen/a.c '#include "generated/emitter_version.h"'
fine codegen/a.c 'static const int table[3] = {1, 2, 3};\nstruct x;\nint f(int a);\nextern const int y;'
fine base/a.c '/* TO''DO(12): later; XX''XH is a name */'
fine cli/a.c 'int main(void) { return malloc(3) == 0; }'

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
