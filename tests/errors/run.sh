#!/bin/sh
# Every example of docs/errors.md is run and gives the messages printed there; every diagnostic has
# a section; a broken page is noticed.
cd "${KILN_SRC:-$(dirname "$0")/../..}" || exit 1
passed=0 failed=0
count() { if [ "$1" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi; }

scripts/errors --check
count $?

# Every message shown there, and of every refused program among the goldens, is fit for people.
judged=$(awk -f tests/errors/judge.awk docs/errors.md tests/golden/*/*.lua)
count $?
echo "$judged"
# What it looks for is found: each of these texts is wrong, the first is not.
judge() { # judge EXPECTED 'message'
  said=$(awk -f tests/errors/judge.awk - <<EOF
$2
EOF
  )
  if grep -q -e "$1" <<EOF
$said
EOF
  then
    count 0
  else
    count 1
    echo "judge.awk says of '$2': $said"
  fi
}
judge '1 messages, 0 wrong' 'a.lua:3:4: error: the dims are 3 and 4; they must be equal [K0404]'
judge 'no place in the program' 'error: the dims are 3 and 4; they must be equal [K0404]'
judge 'no place in the program' 'a.lua: error: `+` takes tiles, got number 1 [K0503]'
judge 'fewer than 3 numbers' 'a.lua:3:4: error: too much shared memory [K0702]'
judge 'fewer than 1 numbers' 'a.lua:3:4: error: the kernel has too many ops; plain loops unroll [K0505]'
judge 'fewer than 2 numbers' 'a.lua:3:4: error: argument A does not fit the kernel [K0404]'
judge 'the inside shows' 'a.lua:3:4: error: internal error in pass cse [K0602]'
judge 'the inside shows' 'a.lua:3:4: error: dce left an op behind [K0001]'
judge 'a trace of Kiln itself' 'codegen/lower.c:120: assertion failed'
judge 'a trace of Kiln itself' '#1 0x00007f12 in lower'
judge '0 messages' 'nothing'

# The checker itself, on a copy of what it reads: each break is named.
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/docs" "$tree/base" "$tree/tests" "$tree/scripts"
cp scripts/errors "$tree/scripts/"
breaks() { # breaks 'sed script' FILE 'pattern of the report'
  cp docs/errors.md "$tree/docs/"
  cp base/diags.def "$tree/base/"
  rm -rf "$tree/tests/errors" "$tree/tests/unit"
  cp -r tests/errors tests/unit "$tree/tests/"
  # Two sections do: running all examples again would take seconds.
  sed -i -n '1,/^## /{/^## /!p}; /^## K0101/,/^## K0202/{/^## K0202/!p}; /^## K1002/,/^## K1003/{/^## K1003/!p}' \
    "$tree/docs/errors.md"
  sed -i '/^DIAG/{/K0101\|K0201\|K1002/!d}' "$tree/base/diags.def"
  for f in "$tree"/tests/errors/K*; do
    case $f in */K0101* | */K0201* | */K1002*) ;; *) rm "$f" ;; esac
  done
  sed -i "$1" "$tree/$2"
  "$tree/scripts/errors" --check >"$tree/said" 2>&1
  code=$?
  if [ -z "$3" ] && [ $code = 0 ]; then
    count 0
  elif [ -n "$3" ] && [ $code != 0 ] && grep -q -e "$3" "$tree/said"; then
    count 0
  else
    count 1
    echo "wrong: sed '$1' $2 gave exit code $code and:"
    cat "$tree/said"
  fi
}
KILN=$(realpath "${KILN:-build/debug/kiln}")
export KILN
breaks '' docs/errors.md ''
breaks "s/'}' expected/'}' wanted/" docs/errors.md 'run scripts/errors'
breaks '/^## K0201/d' docs/errors.md 'another section than K0101'
breaks '$a ## K0999: more' docs/errors.md 'K0999 is not in base/diags.def'
breaks '/^DIAG(GUARD/s/K1002/K1009/' base/diags.def 'K1002 is not in'
breaks 's/{256)/{256})/' tests/errors/K0101_syntax.lua 'does not give K0101'
breaks 's/test_buffers/test_nothing/' docs/errors.md 'there is no test_nothing in tests/unit/test_rt_launch.c'
breaks 's/test_buffers/test_launch_plan/' docs/errors.md 'does not run test_launch_plan'
breaks '/<!-- example: K0201/d' docs/errors.md 'K0201_lua_error.lua is shown 0 times'
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
