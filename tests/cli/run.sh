#!/usr/bin/env bash
# Tests of the `kiln` command: exit codes, messages, bad input, limits, Ctrl-C, running out of memory.
# KILN: the executable; KILN_SRC: the source folder. Nothing may be left behind in the scratch folder.
set -u
KILN=${KILN:?the path of the kiln executable}
SRC=${KILN_SRC:-$(cd "$(dirname "$0")/../.." && pwd)}
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
cd "$WORK" || exit 1
passed=0 failed=0

# expect NAME EXIT-CODE 'pattern of stdout+stderr' COMMAND...: runs it under a time limit.
expect() {
  local name=$1 code=$2 pattern=$3 out got
  shift 3
  out=$(timeout 60 "$@" 2>&1 </dev/null)
  got=$?
  if [ "$got" = "$code" ] && grep -qE -e "$pattern" <<<"$out"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'FAIL %s: exit %s (expected %s), expected /%s/ in:\n%s\n' \
      "$name" "$got" "$code" "$pattern" "$(head -c 2000 <<<"$out")"
  fi
}

body() { # body 'lua text of the kernel body' -> a kernel file on stdout
  cat <<LUA
return kernel {
  name = "k",
  args = { tensor("X", f32, "M", "N"), out("Y", f32, "M", "N") },
  grid = function(d, c) return cdiv(d.M, 16), cdiv(d.N, 16) end,
  body = function(a, d, c, i, j)
    local x = a.X:tile({i * 16, j * 16}, {16, 16})
    $1
    a.Y:store({i * 16, j * 16}, x)
  end,
}
LUA
}
GEMM=$SRC/kernels_ref/gemm.lua

# ---- usage: exit code 2
expect 'no command' 2 'usage: kiln' "$KILN"
expect 'unknown command' 2 'unknown command .frob.' "$KILN" frob
expect 'unknown option' 2 'unknown option .--frob.' "$KILN" run "$GEMM" --frob
expect 'option of another command' 2 'unknown option' "$KILN" check "$GEMM" --junit x.xml
expect 'value missing' 2 'value is missing' "$KILN" run "$GEMM" --shape
expect 'not KEY=VALUE' 2 'expected KEY=VALUE' "$KILN" run "$GEMM" --shape 12
expect 'not a number' 2 'whole number' "$KILN" run "$GEMM" --seed x
expect 'file missing' 2 'FILE is missing' "$KILN" run
expect 'two files' 2 'one argument too many' "$KILN" check "$GEMM" "$GEMM"
expect 'bad --on' 2 'interp, emu or gpu' "$KILN" run "$GEMM" --on moon
expect 'no decimal number' 2 'whole number' "$KILN" run "$GEMM" --seed 0x10
expect 'number too large' 2 'below 2\^31, got .4294967296.' "$KILN" run "$GEMM" --case 4294967296
expect 'the item at fault' 2 'KEY=VALUE,... at .=3.' "$KILN" run "$GEMM" --shape M=1,=3,N=4
expect 'too many items' 2 'too many items at .k65=1.' \
  "$KILN" run "$GEMM" --set "$(seq -f 'k%g=1' -s , 65)"
expect 'second target' 2 'one --target.*sm_90a' "$KILN" show "$GEMM" --target sm_80,sm_90a
expect 'asked for twice' 2 '.N. is given twice' \
  "$KILN" run "$GEMM" --kernel gemm --on interp --shape M=1,K=1,N=10,N=20
expect 'layout and stride' 2 '.A. has both' \
  "$KILN" run "$GEMM" --kernel gemm --on interp --layout A=col --stride A=1,64
expect 'help' 0 'usage: kiln run' "$KILN" run --help
expect 'version' 0 '^kiln [0-9]+\.[0-9]+\.[0-9]+$' "$KILN" --version

# ---- files
expect 'no such file' 1 'cannot read nofile.lua: No such file' "$KILN" check nofile.lua
expect 'a folder' 1 'not a regular file' "$KILN" check "$SRC"
: >empty.lua
expect 'empty file' 1 'empty.lua' "$KILN" check empty.lua
head -c 4096 /dev/urandom >noise.lua
expect 'noise' 1 'noise.lua' "$KILN" check noise.lua
expect 'unwritable output' 1 'cannot write /nonexistent/x' \
  "$KILN" show "$GEMM" --kernel gemm --stage tile --output /nonexistent/x
expect 'unwritable junit' 1 'cannot write /nonexistent/x' \
  "$KILN" test "$GEMM" --on interp --junit /nonexistent/x
expect 'full disk' 1 'cannot write' sh -c "\"$KILN\" show \"$GEMM\" --kernel gemm >/dev/full"

# ---- kernels: exit code 1, file:line:col
printf 'return kernel {\n  name = = 3 }\n' >syntax.lua
expect 'syntax error' 1 'syntax.lua:2:10: error:.*near' "$KILN" check syntax.lua
printf 'return kernel { name = "k", grud = 1, args = {} }\n' >field.lua
expect 'unknown field' 1 'field.lua:1:.*grud' "$KILN" check field.lua
body 'x = x + a.X:tile({0, 0}, {8, 16})' >shape.lua
expect 'shape mismatch' 1 'shape.lua:7:11: error:.*(16, ?16).*(8, ?16)' "$KILN" check shape.lua
body 'x = x + cast(x, bf16)' >dtype.lua
expect 'dtype mismatch' 1 'dtype.lua:7:11: error:.*(f32.*bf16|cast)' "$KILN" check dtype.lua
body 'if x > 0 then x = x * 2 end' >maskif.lua
expect 'if on a mask' 1 'maskif.lua:7:.*where' "$KILN" check maskif.lua
body 'while true do end' >endless.lua
expect 'endless loop' 1 'endless.lua:7:.*limit of 100000 steps' "$KILN" check endless.lua --max-steps 100000
body 'local s = (("a"):rep(60)):find((".-"):rep(12) .. "b")' >pattern.lua
expect 'endless pattern' 1 'pattern.lua:7:.*limit of 1000000 steps' "$KILN" check pattern.lua --max-steps 1000000
body 'local s = ("x"):rep(1 << 60)' >huge.lua
expect 'huge string' 1 'huge.lua:7:' "$KILN" check huge.lua
body 'local function f(n) return f(n + 1) + 1 end f(1)' >deep.lua
expect 'endless recursion' 1 'deep.lua:7:.*(deep|recursion)' "$KILN" check deep.lua
case $KILN_BUILD in
  *stress) echo 'SKIP: a million ops: in the stress build arrays grow by one, in quadratic memory' ;;
  *)
    body 'for r = 1, 1000000 do x = x + 1 end' >ops.lua
    expect 'a million ops' 1 'ops.lua:7:.*(too many|limit).*ops|ops.lua:7:.*ops' \
      "$KILN" check ops.lua
    ;;
esac
body 'io.open("/etc/passwd")' >sandbox.lua
expect 'sandbox' 1 'sandbox.lua:7:.*(not available|nil)' "$KILN" check sandbox.lua
expect 'several kernels' 1 'gemm_relu' "$KILN" run "$GEMM" --on interp
expect 'no such kernel' 1 'gemm_relu' "$KILN" run "$GEMM" --kernel frob --on interp
expect 'no such dim' 1 'no dim .Q.' "$KILN" run "$GEMM" --kernel gemm --on interp --shape Q=3
expect 'dim missing' 1 'dim .[KN]. .*--shape' "$KILN" run "$GEMM" --kernel gemm --on interp --shape M=3
expect 'no such knob' 1 'frob' "$KILN" run "$GEMM" --kernel gemm --on interp --set frob=3
expect 'const not listed' 1 'T' "$KILN" run "$GEMM" --kernel gemm --on interp --const T=f64
expect 'illegal config' 1 'BM=256.*BN=256|legal' \
  "$KILN" run "$GEMM" --kernel gemm --on interp --set BM=256,BN=256
expect 'config over a limit' 1 'gemm.lua:|shared memory|limit' \
  "$KILN" check "$GEMM" --kernel gemm --set BM=128,BN=128,BK=1024
expect 'unknown target' 2 'sm_90a' "$KILN" check "$GEMM" --target sm_12
expect 'unknown stage' 2 'scheduled' "$KILN" show "$GEMM" --kernel gemm --stage frob
expect 'unknown pass' 2 'canonicalise' "$KILN" show "$GEMM" --kernel gemm --after frob

expect 'memory limit' 1 'limit of 1000 bytes' "$KILN" check "$GEMM" --max-memory 1000
expect 'output over itself' 1 '.C. is written' \
  "$KILN" run "$GEMM" --kernel gemm --on interp --shape M=4,N=4,K=4 --stride C=0,1
body '' | sed 's/cdiv(d.M, 16)/1/' >cover.lua
expect 'output not covered' 1 'elements were never written: does .grid. cover all of .Y.' \
  "$KILN" run cover.lua --on interp --shape M=40,N=16
expect 'no memory holds it' 1 'more than [0-9.]+ GiB of host memory' \
  "$KILN" run "$GEMM" --kernel gemm --on interp --shape M=1099511627776,N=1024,K=1024

# ---- IR texts
"$KILN" show "$GEMM" --kernel gemm --set BM=128,BN=128 --stage tile >gemm.tir 2>/dev/null
expect 'IR text shown again' 0 '^kiln-ir 1 tile' "$KILN" show gemm.tir --stage tile
cmp -s gemm.tir <("$KILN" show gemm.tir --stage tile 2>/dev/null)
expect 'IR text is the same' 0 '' test $? = 0
expect 'IR text interpreted' 0 'self-checked' \
  "$KILN" run gemm.tir --on interp --shape M=64,N=128,K=96
sed 's/^kernel "*gemm"* {/kernel "a \\"b\\" c" {/' gemm.tir >odd.tir
expect 'odd name in JSON' 0 '^\{"kernel":"a ..b.. c",' "$KILN" run odd.tir --on interp --json --shape M=64,N=128,K=96
if "$KILN" doctor 2>/dev/null | grep -qE '^NVRTC +[0-9]'; then
  expect 'odd name checked' 0 '^\{"kernel":"a ..b.. c","target":' "$KILN" check odd.tir --json
else
  echo 'SKIP: checking a kernel to its end needs NVRTC'
fi
head -c 500 gemm.tir >cut.tir
expect 'cut IR text' 1 'cut.tir:' "$KILN" check cut.tir
sed 's/f32(128,128)/f32(128,64)/' gemm.tir >wrong.tir
expect 'wrong IR text' 1 'wrong.tir:|K06' "$KILN" check wrong.tir
printf 'kiln-ir 9 tile\n' >version.tir
expect 'IR of another version' 1 'version.tir:1' "$KILN" check version.tir

# ---- what is missing
expect 'no NVRTC' 1 'NVRTC' env KILN_NVRTC=/nonexistent "$KILN" check "$GEMM" --kernel gemm
if ! "$KILN" doctor --json 2>/dev/null | grep -q '"gpus":\[{'; then
  expect 'no GPU' 1 '(driver|GPU)' "$KILN" run "$GEMM" --kernel gemm --on gpu
fi
expect 'doctor' 0 'NVRTC' "$KILN" doctor

# ---- stubs
expect 'stubs' 0 '^function gelu\(x\) end' "$KILN" stubs
expect 'stubs as JSON' 0 '^\{"text":"---@meta kiln.u000a' "$KILN" stubs --json
mkdir editor
expect 'stubs into a folder' 0 '^$' "$KILN" stubs -o editor
expect 'stubs are the same' 0 '^$' sh -c "\"$KILN\" stubs | cmp - editor/kiln.lua"
expect 'stubs nowhere' 1 'cannot write /nonexistent/x' "$KILN" stubs --output /nonexistent/x
expect 'reference' 0 '^$' sh -c "\"$KILN\" stubs --reference | cmp - \"$SRC/docs/reference.md\""

# ---- running
expect 'interpreter' 0 'verified' "$KILN" run "$GEMM" --kernel gemm --on interp --shape M=33,N=17,K=9
expect 'exact' 0 'bitwise' \
  "$KILN" run "$GEMM" --kernel gemm --on interp --exact --shape M=33,N=17,K=9
expect 'exact through views' 0 'bitwise' \
  "$KILN" run "$SRC/kernels_ref/transpose.lua" --kernel split_heads --on interp --exact
expect 'algebraic' 0 'the same bits in the algebraic domain: as traced, after the tile passes' \
  "$KILN" run "$GEMM" --kernel gemm --domain algebraic --shape M=33,N=17,K=9
expect 'tests in the algebraic domain' 0 '\(algebraic\)' \
  "$KILN" test "$SRC/kernels_ref/softmax.lua" --domain algebraic
expect 'unknown domain' 2 'rounded or algebraic, got .real.' \
  "$KILN" run "$GEMM" --kernel gemm --domain real
expect 'emulator' 0 'on emulator' \
  "$KILN" run "$GEMM" --kernel gemm --on emu --exact --shape M=33,N=17,K=9
expect 'emulator, algebraic' 0 'on the emulator, by seed' \
  "$KILN" run "$GEMM" --kernel gemm --on emu --domain algebraic --shape M=33,N=17,K=9
expect 'algebraic on a GPU' 2 'interpreter' \
  "$KILN" run "$GEMM" --kernel gemm --domain algebraic --on gpu
expect 'json' 0 '^\{"kernel":"gemm".*"level":"verified"' \
  "$KILN" run "$GEMM" --kernel gemm --on interp --json --shape M=33,N=17,K=9
body 'x = x * 2' | sed 's/^}/  oracle = function(t) return t.X * 3 end,\n}/' >lies.lua
expect 'wrong result' 1 'Y. of kernel .k. .*wrong' \
  "$KILN" run lies.lua --on interp --shape M=20,N=20
expect 'test with JUnit' 0 '[1-9][0-9]* passed, 0 failed' \
  "$KILN" test "$SRC/kernels_ref/softmax.lua" --on interp --junit out.xml
expect 'JUnit file' 0 'testcase' cat out.xml

expect 'no such kernel to test' 1 'no file has a kernel .nosuch.' \
  "$KILN" test "$SRC/kernels_ref/softmax.lua" --on interp --kernel nosuch
many='a.X:every(0, 2):reshape({d.N, d.M, 2}):tile({0, 0, 0}, {1, 16, 16}):reshape(16, 16)'
body "x = $many" >many.lua
body "x = cast(x, f16) + cast($many, bf16)" >many_wrong.lua
if "$KILN" doctor 2>/dev/null | grep -qE '^NVRTC +[0-9]'; then
  expect 'no lowering' 1 'is lowered to the GPU only where.*K0701' "$KILN" check many.lua
  expect 'no lowering, skipped' 0 '^SKIP k: many.lua:7:25: error: .*K0701.$' \
    "$KILN" check many.lua --skip-unsupported
  expect 'no lowering, skipped, as JSON' 0 '^\{"skipped":"k","why":"many.lua:7:25: error: ' \
    "$KILN" check many.lua --skip-unsupported --json
  expect 'other errors are not skipped' 1 'K0501' "$KILN" check many_wrong.lua --skip-unsupported
else
  echo 'SKIP: what has no lowering is told where there is NVRTC'
fi
expect 'nothing to skip' 0 '^7 passed, 0 failed, 0 skipped$' \
  "$KILN" test "$SRC/kernels_ref/softmax.lua" --on interp --skip-unsupported
expect 'test of noise' 1 'noise.lua' "$KILN" test noise.lua --on interp --junit noise.xml
expect 'JUnit of noise' 1 '^$' grep -P '[^\x09\x0a\x20-\x7e]' noise.xml
expect 'shown as JSON' 0 '^\{"kernel":"gemm","target":"sm_90a","text":"kiln-ir 1 tile.u000a' \
  "$KILN" show "$GEMM" --kernel gemm --json --target sm_90a

# ---- diff
cat >axpy.lua <<'LUA'
return kernel {
  name = "axpy",
  args = { tensor("X", f32, "N"), tensor("Z", f32, "N"), out("Y", f32, "N") },
  grid = function(d) return cdiv(d.N, 64) end,
  body = function(a, d, c, i)
    a.Y:store({i * 64}, a.X:tile({i * 64}, {64}) * 3 - a.Z:tile({i * 64}, {64}))
  end,
}
LUA
DIFF=("$KILN" diff axpy.lua --shape N=100 --target sm_90a --on emu)
expect 'no difference' 0 'same     interpreter and emulator \(rounded\)' "${DIFF[@]}"
expect 'none in payloads' 0 'emulator \(algebraic\)' "${DIFF[@]}" --domain algebraic
expect 'none as JSON' 0 '"same":true,"agreed":"emulator \(rounded\)","runs":[0-9]+\}$' "${DIFF[@]}" --json
expect 'none of an IR text' 0 'same  ' sh -c \
  '"$0" show axpy.lua --shape N=100 >axpy.tir && "$0" diff axpy.tir --shape N=100 --on emu' "$KILN"
"$KILN" show axpy.lua --shape N=100 --target sm_90a --stage machine >same.tir
expect 'its own machine code' 0 'same  ' "${DIFF[@]}" --machine same.tir
line=$(grep -n ' = sub %[0-9]*, %[0-9]* : f32' same.tir | head -1 | cut -d: -f1)
sed "${line}s/sub \(%[0-9]*\), \(%[0-9]*\)/sub \2, \1/" same.tir >swapped.tir
expect 'operands swapped' 1 "op +sub at swapped.tir:$line:5" "${DIFF[@]}" --machine swapped.tir
expect 'the element' 1 'element  Y\[[0-9]+\]: expected -?[0-9]+, found -?[0-9]+, .* of 100 elements differ' \
  "${DIFF[@]}" --machine swapped.tir
expect 'the line' 1 "^swapped.tir:$line:5: error: the emulator differs .* K1001|K1001" \
  "${DIFF[@]}" --machine swapped.tir
expect 'a difference as JSON' 1 "\"file\":\"swapped.tir\",\"line\":$line," "${DIFF[@]}" --machine swapped.tir --json
line=$(grep -n 'digits .*map = \[16,4,' same.tir | head -1 | cut -d: -f1)
sed "${line}s/16,4,/16,8,/" same.tir >lane.tir
expect "a lane's address" 1 "op +digits at lane.tir:$line:5" "${DIFF[@]}" --machine lane.tir
expect 'diff on the interpreter' 2 '--on takes emu or gpu' "$KILN" diff axpy.lua --on interp
expect 'diff in no domain' 2 '--domain takes rounded or algebraic' "$KILN" diff axpy.lua --domain real
expect 'machine code alone' 2 'KERNEL --machine TEXT' "$KILN" diff same.tir --shape N=100
expect 'no machine code' 2 'axpy.lua is no machine IR' "${DIFF[@]}" --machine axpy.lua
expect 'machine code of another kernel' 1 'arguments of same.tir are not' \
  "$KILN" diff "$SRC/kernels_ref/softmax.lua" --machine same.tir
expect 'machine code for another target' 2 'same.tir is for sm_90a, not for sm_80' \
  "$KILN" diff axpy.lua --shape N=100 --target sm_80 --machine same.tir
expect 'diff without a shape' 1 'dim .N.*K0404' "$KILN" diff axpy.lua
"$KILN" diff "$GEMM" --kernel gemm --shape M=4096,N=4096,K=4096 --target sm_90a --on emu >slow.out 2>&1 &
pid=$!
sleep 1
kill -INT $pid
wait $pid
expect 'a comparison stopped' 0 '^130$' echo $?

# ---- reduce
cat >fail.tir <<'TIR'
kiln-ir 1 tile
kernel k {
  arg X: in f32 [M, N]
  arg Y: out f32 [N]
  dims M, N
  grid cdiv(N, 8)
  body(%x: view f32(?,?), %y: view f32(?), %m: index, %n: index, %i: index) {
    %8 = const 8 : index
    %at = mul %i, %8 : index
    %0 = const 0 : index
    %1 = const 1 : index
    %2 = const 2 : index
    %every = view_every %x {axis = 0, count = 2} : view f32(?,?)
    %many = view_reshape %every, %n, %m, %2 : view f32(?,?,?)
    %t = load %many, %0, %0, %0 : f32(8,1,1)
    %v = reshape %t : f32(8)
    %r = for %k: index = %0, %n, %1 carry(%a: f32(8) = %v) : f32(8) {
      %e = exp %a : f32(8)
      yield %e
    }
    store %y, %at, %r
    return
  }
}
TIR
expect 'reduced to its error' 0 '^kiln reduce: 1?[0-9] lines are left' "$KILN" reduce fail.tir --output small.tir
expect 'the same error' 1 'K0701' "$KILN" check small.tir --target sm_90a
expect 'nothing but the error' 1 '^$' grep -E 'for|exp' small.tir
expect 'reduced with a command' 0 'exp' "$KILN" reduce fail.tir -- sh -c '! grep -q exp "$0"'
expect 'path in the command' 0 'store' "$KILN" reduce fail.tir -- sh -c '! grep -q store {}'
expect 'by the exit code' 0 'exp' "$KILN" reduce fail.tir -- \
  sh -c 'grep -q exp {} && exit 7; exit 1'
expect 'a command that succeeds' 2 'true ends with exit code 0' "$KILN" reduce fail.tir -- true
expect 'a command that is not there' 2 'cannot run nosuch' "$KILN" reduce fail.tir -- nosuch
sed 's/count = 2/count = 1/; s/%n, %m, %2/%m, %n, %1/' fail.tir >good.tir
expect 'nothing fails' 2 'passes .kiln check.*give a command' "$KILN" reduce good.tir
expect 'a kernel reduced' 0 'dot' "$KILN" reduce "$GEMM" --kernel gemm -- sh -c '! grep -q dot {}'
expect 'no file to reduce' 1 'cannot read nofile.tir' "$KILN" reduce nofile.tir
"$KILN" reduce fail.tir --output slow.tir -- sh -c 'sleep 0.2; exit 3' >slow.out 2>&1 &
pid=$!
sleep 1
kill -INT $pid
wait $pid
expect 'a reduction stopped' 0 '^130$' echo $?
expect 'the best so far' 0 'kiln-ir 1 tile' cat slow.tir
"$KILN" reduce fail.tir -- sh -c 'sleep 30' >slow.out 2>&1 &
pid=$!
sleep 1
kill -INT $pid
started=$SECONDS
wait $pid
expect 'a long command stopped' 0 '^130$' echo $?
expect 'and not waited for' 0 '' test $((SECONDS - started)) -lt 15
mkdir tmp
expect 'reduced in TMPDIR' 0 'exp' env TMPDIR=tmp "$KILN" reduce fail.tir -- sh -c '! grep -q exp tmp/kiln-reduce-*.tir'
expect 'nothing left behind' 0 '^0$' sh -c 'ls tmp | wc -l'

# ---- what is told when a kernel is at fault: the line, the case, in order, and nothing raw
flat() { # flat GRID BODY MORE: a kernel over flat X and Y
  cat <<LUA
return kernel {
  name = "k",
  args = { tensor("X", f32, "N"), out("Y", f32, "N", "N // 2 - 1") },
  grid = function(d) return $1 end,
  body = function(a, d, c, i)
    $2
  end, ${3:-}
}
LUA
}
flat 'd.N - 9' '' >grid.lua
expect 'negative grid' 1 '^grid.lua:4:33: .*is negative: -5.*K0404' \
  "$KILN" run grid.lua --on interp --shape N=4
flat '1 // (d.N - 4)' '' >div.lua
expect 'grid by zero' 1 '^div.lua:[24]:[0-9]+: .*grid axis 0.*K0404' \
  "$KILN" run div.lua --on interp --shape N=4
flat 'd.N * 4000000000, 4000000000' '' >big.lua
expect 'grid too large' 1 '^big.lua:[24]:[0-9]+: .*2\^63.*K0404' \
  "$KILN" run big.lua --on interp --shape N=4
expect 'negative dim' 1 '^grid.lua:3:35: .*dim 1 of argument .Y. is -1.*K0404' \
  "$KILN" run grid.lua --on interp --shape N=1
flat 1 '' 'tune = {A = {1, 2, 3}, B = {1, 2, 3}, C = {1, 2, 3}}, legal = function(c)
    for i = 1, 1000 do end return false end,' >legal.lua
for steps in $(seq 9000 1 9030); do
  expect 'legal within limits' 1 '^legal.lua:[0-9]+:[0-9]+: .*K020[24]' \
    "$KILN" check legal.lua --max-steps "$steps"
done
flat 1 'return a.X:tile({0}, {8})' >lost.lua
expect 'a body that returns' 1 '^lost.lua:6:5: .*returns.*f32\(8\).*would be lost.*K0401' \
  "$KILN" check lost.lua
flat 1 'local function f() return 1 end f() return nil' >early.lua
expect 'a body that returns nothing' 0 '' "$KILN" show early.lua --stage tile
flat 1 'print("a\27[31mb\r\u{9b}c\xff")' >raw.lua
expect 'printed control characters' 0 'a\\x1b\[31mb\\x0d\\xc2\\x9bc\\xff$' \
  "$KILN" run raw.lua --on interp --shape N=4 --no-verify
printf 'error("a\\27[31m\\r")--\033[31m\n' >raw2.lua
expect 'control characters in errors' 1 'a\\x1b\[31m\\x0d' "$KILN" check raw2.lua
expect 'and in the line shown' 1 '^  error\("a.27\[31m.r"\)--\?\[31m$' "$KILN" check raw2.lua
cat >cases.lua <<'LUA'
local function of(name, wrong)
  return kernel {
    name = name,
    args = { out("Y", s32, "N") },
    grid = function(d) return 1 end,
    body = function(a, d) a.Y:store({0}, full(s32, 0, 8) + cast(d.N, s32)) end,
    oracle = function(t, d) return full(f64, d.N, d.N) + (d.N == wrong and 1 or 0) end,
    cases = {{shape = {N = 4}}, {shape = {N = 5}}},
  }
end
return {first = of("first", 5), second = of("second", 4)}
LUA
expect 'which case' 1 'output .Y. of kernel .first. \(case 1\) is wrong' \
  "$KILN" test cases.lua --on interp
"$KILN" test cases.lua --on interp >order.out 2>&1
expect 'in order' 0 '^PASS FAIL error FAIL error PASS $' \
  sh -c 'grep -oE "^(PASS|FAIL|error)" order.out | tr "\n" " "'
cat >fact.tir <<'TIR'
kiln-ir 1 tile
kernel facts {
  arg X: in f32 [E]
  arg Y: out f32 [E]
  dims E
  fact E = 8
  grid 1
  body(%x: view f32(8), %y: view f32(8), %e: index, %i: index) {
    %0 = const 0 : index
    %v = load %x, %0 : f32(8)
    store %y, %0, %v
    return
  }
}
TIR
expect 'a dim by a fact' 0 'facts E=8' "$KILN" run fact.tir --on interp
expect 'against the fact' 1 '^fact.tir:6:8: .*E = 8, found 9' \
  "$KILN" run fact.tir --on interp --shape E=9

# ---- knobs that reach the recipe
for p in 'promote=0 l2 0' 'promote=1 l2 64' 'promote=2 l2 128' 'promote=3 l2 256' 'stages=3 l2 256'; do
  expect "knob $p" 0 "swizzle 128 ${p#* } fill" "$KILN" show "$GEMM" --kernel gemm --stage recipe \
    --target sm_90a --shape M=256,N=256,K=256 --set "${p%% *}"
done
expect 'knob out of range' 1 '0 to 3' "$KILN" show "$GEMM" --kernel gemm --stage recipe \
  --target sm_90a --shape M=256,N=256,K=256 --set promote=4

# ---- Ctrl-C: the process stops soon and says so
body 'for k in range(0, d.N * 1000000, 1) do x = x * 1.0001 end' >slow.lua
"$KILN" run slow.lua --on interp --shape M=16,N=1000 >slow.out 2>&1 &
pid=$!
sleep 1
kill -INT $pid
started=$(date +%s)
wait $pid
code=$?
expect 'Ctrl-C' 0 "^130 [0-5]$" echo "$code $(($(date +%s) - started))"
expect 'Ctrl-C says so' 0 'interrupted' cat slow.out
# Twice at once, as timeout does it, is one interrupt; in either order and however close.
for pause in 0 0 0.01 0.05; do
  "$KILN" run slow.lua --on interp --shape M=16,N=1000 >slow.out 2>&1 &
  pid=$!
  sleep 1
  kill -INT $pid
  sleep $pause
  kill -TERM $pid 2>/dev/null # gone already where it was quick
  wait $pid
  expect "interrupted twice within $pause s" 0 '^130$' echo $?
  expect "interrupted twice within $pause s, says so" 0 'interrupted' cat slow.out
done

# ---- the n-th allocation fails: always a clean end, never a crash or success with a wrong result
n=1 step=1 bad=0
while [ $n -lt 2000000 ]; do
  out=$(KILN_TEST_FAIL_ALLOC=$n timeout 60 "$KILN" run "$GEMM" --kernel gemm --on interp \
    --shape M=8,N=8,K=8 --set BM=64,BN=64,BK=16 2>&1)
  code=$?
  [ $code = 0 ] && break
  if [ $code != 1 ] || ! grep -qE 'memory' <<<"$out"; then
    bad=1
    printf 'allocation %s fails: exit %s\n%s\n' $n $code "$(head -c 1000 <<<"$out")"
    break
  fi
  [ $n -ge 40 ] && step=$((n / 12))
  n=$((n + step))
done
expect 'allocation failures' 0 '^0 0$' echo "$bad $code"

left=$(find . -newer lies.lua -type f ! -name '*.lua' ! -name '*.tir' ! -name '*.xml' ! -name '*.out')
expect 'nothing left behind' 0 '^$' echo "$left"
printf '%s passed, %s failed\n' $passed $failed
[ $failed = 0 ]
