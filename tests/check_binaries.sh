#!/bin/sh
# Checks of what was built: no mutable data in the libraries, only kiln.h's names exported, and
# programs that need nothing but the C library. KILN_BUILD: a build without instrumentation.
set -eu
cd "${KILN_BUILD:?the build folder}"
passed=0 failed=0 skipped=0

rule() { # rule NAME BROKEN
  if [ -z "$2" ]; then
    passed=$((passed + 1))
    return 0
  fi
  failed=$((failed + 1))
  echo "broken: $1"
  echo "$2" | head -n 20 | sed 's/^/  /'
}

skip() {
  skipped=$((skipped + 1))
  echo "SKIP: $1"
}

# Objects in writable sections; constant tables of pointers lie in .data.rel.ro.
mutable_data() {
  nm -A -f sysv "$1" | awk -F'|' '
    { section = $7; gsub(/ /, "", section); name = $1; gsub(/ /, "", name)
      if (section ~ /^\.(bss|data|tbss|tdata)/ && section !~ /^\.data\.rel\.ro/ && $4 ~ /OBJECT|TLS/)
        print name " in " section }'
}

for library in libkiln_*.a; do
  [ -e "$library" ] || continue
  case $library in *unit_helpers*) continue ;; esac
  rule "$library has no mutable global data" "$(mutable_data "$library")"
done

# This rule can fail: a library with such data is reported.
probe=$(mktemp -d)
trap 'rm -rf "$probe"' EXIT
printf 'int counter; static const char *const names[] = {"a"};\nconst char *n(int i);\n' >"$probe/a.c"
echo 'const char *n(int i) { static int calls; return names[i + calls++]; }' >>"$probe/a.c"
cc -fPIC -c -o "$probe/a.o" "$probe/a.c"
found=$(mutable_data "$probe/a.o" | wc -l)
rule "the rule sees a global and a static local, not a table" "$([ "$found" = 2 ] || echo "$found")"

if [ -e libkiln.so ]; then
  rule "libkiln.so exports kiln_ names alone" \
    "$(nm -D --defined-only libkiln.so | awk '$3 !~ /^kiln_/ { print $3 }')"
  header=${KILN_SRC:?the source folder}/include/kiln.h
  nm -D --defined-only libkiln.so | awk '{ print $3 }' | sort >"$probe/exported"
  sed -n '/KILN_API/,/)/p' "$header" | grep -oE '\bkiln_[a-z0-9_]+\(' | tr -d '(' | sort -u >"$probe/declared"
  rule "libkiln.so exports exactly what kiln.h declares" \
    "$(comm -3 "$probe/exported" "$probe/declared")"
else
  skip "libkiln.so was not built"
fi

for program in kiln kiln-worker; do
  if [ -x "$program" ]; then
    rule "$program needs the C library alone" "$(readelf -d "$program" |
      sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libm|libdl|libpthread|ld-linux.*)\.so')"
  else
    skip "$program was not built"
  fi
done

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
