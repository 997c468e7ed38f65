#!/usr/bin/env bash
# Kernel files that mean harm: endless loops, exponential patterns, strings of 8 GiB, deep recursion,
# tricks with metatables, values kept beyond their time, huge texts. Each ends within its limits: with
# the message expected, in a few seconds, in bounded memory, and never in a crash.
# KILN: the executable. KILN_ONLY=NAME runs one case.
set -u
case ${KILN_BUILD:-} in
  *stress)
    echo 'SKIP: in the stress build arrays grow by one, in quadratic memory: limits are met late'
    exit 77
    ;;
esac
export LC_ALL=C
KILN=${KILN:?the path of the kiln executable}
KILN=$(realpath "$KILN")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
passed=0 failed=0
TIMEFORMAT='%U %S'
seconds=6 # of CPU time
if grep -aqE '__(asan|tsan|ubsan)_' "$KILN"; then
  seconds=40
else
  ulimit -v 3000000 # KiB
fi

# Limits that end soon; `full` cases run under the default ones.
quick=(--max-steps 3000000 --max-memory 67108864 --max-seconds 100)

# run NAME CODE [OPTION...]: NAME.lua gives a message with CODE ("" : none, exit code 0).
run() {
  local name=$1 code=$2 rc took
  shift 2
  case ${KILN_ONLY:-$name} in "$name") ;; *) return ;; esac
  { time timeout 120 "$KILN" test "$name.lua" --on interp "$@" >out 2>err </dev/null; rc=$?; } 2>took
  took=$(awk '{ print $1 + $2 }' took)
  if [ "$rc" = "${code:+1}" ] || { [ -z "$code" ] && [ "$rc" = 0 ]; } &&
    grep -aqF "${code:+[}$code" err out && awk -v t="$took" -v most=$seconds 'BEGIN { exit t > most }'; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'FAIL %s: exit code %s after %s s of CPU time, expected %s: %s\n' "$name" "$rc" "$took" \
      "${code:-success}" "$(head -c 1500 err out)"
  fi
}

# kernel NAME FILE-LEVEL BODY FIELDS
kernel() {
  printf '%s\n' "$2" 'return kernel { name = "k", args = { tensor("X", f32, "N"), out("Y", f32, "N") },' \
    'grid = function(d) return cdiv(d.N, 16) end,' \
    'body = function(a, d, c, i)' 'local x = a.X:tile({i * 16}, {16})' "$3" \
    'a.Y:store({i * 16}, x)' 'end,' "$4" \
    'cases = { {shape = {N = 64}}, {shape = {N = 2000}}, {shape = {N = 3}} } }' >"$1.lua"
}
in_file() { kernel "$1" "$3" '' '' && run "$1" "$2" "${quick[@]}"; } # NAME CODE TEXT
in_body() { kernel "$1" '' "$3" '' && run "$1" "$2" "${quick[@]}"; }
in_kernel() { kernel "$1" 'local kept' "${4:-}" "$3" && run "$1" "$2" "${quick[@]}"; }
hungry() { kernel "$1" "$3" '' '' && run "$1" "$2" --max-memory 67108864 --max-seconds 100; }
full() { kernel "$1" "$3" "${4:-}" '' && run "$1" "$2"; }

# ---- endless
full endless K020 'while true do end'
in_file goto K0202 '::a:: goto a'
in_file repeat K0202 'repeat until false'
in_file iterator K0202 'for k in function() return 1 end do end'
in_file pcall K0202 'while true do pcall(error) end'
in_file pcall_around K0202 'while true do pcall(function() while true do end end) end'
in_file xpcall K0202 'while true do xpcall(error, function() while true do end end) end'
in_file ipairs K0202 'for i in ipairs(setmetatable({}, {__index = function() return 1 end})) do end'
in_file move K0202 'table.move({1}, 1, 1 << 60, 2)'
in_file close K0202 'do local z <close> = setmetatable({}, {__close = function() while true do end end}) end'
in_file string_method K0202 \
  'getmetatable("").__index = function() while true do end end local n = ("x"):len()'
in_file globals K0202 'setmetatable(_G, {__index = function() while true do end end}) local x = nosuch'
in_file error_object K0202 'error(setmetatable({}, {__tostring = function() while true do end end}))'
in_kernel oracle K0202 'oracle = function() while true do end end,'
in_kernel inputs K0202 'inputs = function() while true do end end,'
in_kernel legal K0202 'legal = function() while true do end end,'
in_kernel configs K0202 'legal = function() return false end, tune = (function() local t = {}
  for i = 1, 20 do t["T" .. i] = {1, 2, 3, 4, 5, 6, 7, 8, 9} end return t end)(),'
in_kernel oracle_map K0202 'oracle = function(t) return map(function() while true do end end, t.X) end,'
in_body unrolled K0202 'local k = 1 while k < 3 do local y = x end'
in_body unrolled_ops K0505 'local k = 1 while k < 3 do x = x + 0 end'
in_body in_device_loop K0202 'for k in range(0, d.N) do while true do end end'
in_body device_loop K0202 'local n = i while n >= 0 do n = n + 1 - 1 end'
in_body device_loop_of_data K0202 'local n = a.X:at(0) while n == n do n = n + 0.5 end'
in_body device_range K0202 'for n in range(0, 1 << 62) do x = x * 0.5 end'
in_body grows_in_loop K0302 'local t = {} for k in range(0, d.N) do t[#t + 1] = k end'
in_body string_grows K0303 'local s = "" for k in range(0, d.N) do s = s .. "x" end print(s)'

# ---- patterns
in_file pattern K0202 'local s = ("a"):rep(3000):find((".-"):rep(12) .. "b")'
in_file pattern_gsub K0202 'local s = ("a"):rep(100000):gsub("a*a*a*a*b", "")'
in_file pattern_balance K0202 'local s = ("("):rep(100000):find(("%b()"):rep(30))'
in_file pattern_back K0202 'for w in (("a"):rep(30000)):gmatch("(a*)a*%1b") do end'
in_file pattern_deep K0201 'local s = ("a"):rep(200000):find(("a?"):rep(1000) .. ("a"):rep(1000) .. "c")'
in_file pattern_plain K0202 \
  'local s = ("a"):rep(1 << 22) for i = 1, 1e6 do s:find(("a"):rep(1 << 20) .. "b", 1, true) end'

# ---- memory
in_file gigabytes K0201 'local s = ("x"):rep(1 << 33)'
in_file exabytes K0201 'local s = ("x"):rep(1 << 62, "yz")'
hungry doubling K0203 'local s = "x" for i = 1, 60 do s = s .. s end'
hungry strings K0203 'local t = {} for i = 1, 1e9 do t[i] = ("x"):rep(1000) .. i end'
hungry gsub_grows K0203 'local s = ("x"):rep(1e6):gsub("x", ("y"):rep(1e6))'
hungry table_grows K0203 'local t = {} for i = 1, 1e9 do t[i] = {i} end'
hungry closures K0203 'local f = print for i = 1, 1e9 do local g = f f = function() return g() end end'
in_file unpack K0201 'local n = select("#", table.unpack({}, 1, 1e9))'
in_file format K0201 'local s = string.format(("%99.99f"):rep(1e6), table.unpack({}, 1, 1e6))'
in_file concat_far K0201 'local s = table.concat({}, "x", 1, 1 << 40)'
in_file concat_length K0202 'local s = table.concat(setmetatable({},
  {__len = function() return 1 << 60 end, __index = function() return "x" end}))'
in_file sort_length K020 'table.sort(setmetatable({},
  {__len = function() return 1 << 30 end, __index = function() return 1 end}))'
full kernels K020 'for i = 1, 1e6 do kernel { name = "k", args = { out("Y", f32, "N") },
  grid = function() return 1 end, body = function() end } end'
in_file declarations K0203 'for i = 1, 1e9 do tensor("X", f32, "N * " .. i) end'
in_body texts K020 'for i = 1, 1e9 do local _ = tostring(x) end'
in_body shapes K020 'for i = 1, 1e9 do local _ = x.shape end'
in_body ranges K020 'for i = 1, 1e9 do local _ = range(0, i) end'
in_body constants K0505 'for i = 1, 1e9 do local _ = f32(i) end'
in_body ops K0505 'for i = 1, 1e9 do x = x + i end'
in_body tile_too_large K0702 'x = zeros(f32, 1 << 40)'
in_kernel array_too_large K0203 'oracle = function(t) return zeros(f32, 1 << 40, 1 << 40) end,'
in_kernel cases K020 'schedule = (function() local t = {}
  for i = 1, 1e7 do t["k" .. i] = i end return t end)(),'

# ---- recursion
in_file recursion K0205 'local function f(n) return 1 + f(n) end f(1)'
in_file tail_calls K0205 'local function f() return f() end f()'
in_file through_pcall K0205 'local function f() return pcall(f) end f() local function g() g() end g()'
in_file through_index K0205 \
  'local m = {} m.__index = function(s, k) return s[k + 1] end local x = setmetatable({}, m)[1]'
in_file through_newindex K0205 \
  'local m = {} m.__newindex = function(s, k) s[k + 1] = 1 end setmetatable({}, m)[1] = 1'
in_file through_concat K0205 \
  'local m = {} m.__concat = function(a, b) return a .. b end local t = setmetatable({}, m) t = t .. t'
in_file through_eq K0205 'local m = {} m.__eq = function(a, b) return a == b end
  local x = setmetatable({}, m) == setmetatable({}, m)'
in_file through_tostring K0205 \
  'local m = {} m.__tostring = function(s) return tostring(s) end tostring(setmetatable({}, m))'
in_file through_gsub K0205 'local function f() return ("x"):gsub("x", f) end f()'
in_file through_sort K0205 'local function f() table.sort({1, 2, 3}, f) return true end f()'
in_file index_chain K020 \
  'local t = {} for i = 1, 1e5 do t = setmetatable({}, {__index = t}) end local x = t.y'
in_file call_chain K020 'local t = print for i = 1, 1e5 do t = setmetatable({}, {__call = t}) end t()'
in_body recursion_in_branches K0205 \
  'local function f(n) if n > d.N then return n end return f(n + 1) end f(i)'

# ---- metatables, forged values, globals taken away
in_file forged_tile K0201 'local t = setmetatable({}, {__name = "tile"}) t = t + 1'
in_file dtype_meta K0201 'setmetatable(f32, {})'
in_file dtype_meta_read K0201 'getmetatable(f32).__call = nil'
in_file finalizer K0206 'setmetatable({}, {__gc = function() end})'
in_file weak K0206 'setmetatable({}, {__mode = "k"})'
in_file sort_lies K0201 \
  'local t = {} for i = 1, 1e5 do t[i] = i % 7 end table.sort(t, function() return true end)'
in_file tostring_lies K0201 'print(setmetatable({}, {__tostring = function() return {} end}))'
in_file error_lies K0201 'error(setmetatable({}, {__tostring = function() error("again") end}))'
in_file error_nil K0201 'error(nil)'
in_file nothing_left K0201 'for k in pairs(_G) do _G[k] = nil end print(1)'
in_file replaced K0201 'for _, k in ipairs {"string", "tensor", "cdiv", "f32"} do _G[k] = 3 end'
in_body tile_meta K0201 'setmetatable(x, {})'
in_body tensor_field K0305 'a.X.tile = nil'
in_body tile_as_index K0305 'local t = setmetatable({}, {__index = x}) local n = t.dtype'
in_body tile_as_call K0305 'local t = setmetatable({}, {__call = x}) t()'
in_body tile_as_key K0305 'local t = {[x] = 1}'
in_body tile_sorted K0305 'table.sort({x, x, x})'
in_body tile_raised K0201 'error(x)'
in_body self_of_another K0503 'a.X.tile(x, {0}, {16})'
in_body self_missing K0503 'a.X.tile({0}, {16})'
in_body kernel_in_body K0401 'kernel { name = "z" }'
in_body operator_of_table '' 'x = setmetatable({}, {__add = function() return x end}) + 1'
in_body globals_in_body '' '_G.tostring = nil _G.dot = nil x = relu(x)'

# ---- values kept beyond their time: each case is another run of the kernel
in_kernel kept_tile '' '' 'if kept then x = x + kept end kept = kept or x'
in_kernel kept_tensor '' '' 'kept = kept or a x = kept.X:tile({0}, {16})'
in_kernel kept_range '' '' 'kept = kept or range(0, 9) for k in kept do x = x * 2 end'
in_kernel kept_array K0404 'oracle = function(t) kept = kept or t.X return kept end,'
in_kernel kept_part K0502 \
  'oracle = function(t) kept = kept or t.X:slice({0}, {2}) return t.X + kept:at(1) * 0 end,'
in_kernel array_in_body K0503 'oracle = function(t) kept = t.X return t.X end,' \
  'if kept then x = x + kept end'
in_kernel kept_rng '' 'inputs = function(s, r) kept = kept or r return {X = kept:normal(s.N)} end,'

# ---- numbers
in_body far_offsets '' 'local y = a.X:tile({1 << 62}, {16}) + a.X:tile({i * (1 << 62)}, {16})
  x = x + y + a.X:tile({-(1 << 63)}, {16})'
in_body no_sizes K0503 'x = zeros(f32, 0/0, math.huge, -1)'
in_body far_numbers K050 'x = zeros(s8, 16) + (1 << 63)'
in_file integer_edges '' 'local n = math.mininteger // -1 + math.mininteger % -1'
in_file by_zero K0201 'local n = 1 // 0'

# ---- texts, made here
times() { awk -v n="$1" -v s="$2" 'BEGIN { for (i = 0; i < n; i++) printf "%s", s }'; }
text() { # text NAME CODE: with the body in the file `body`
  kernel "$1" '' '@BODY@' ''
  echo >>body
  sed -i -e '/^@BODY@$/{r body' -e 'd}' "$1.lua"
  run "$1" "$2"
}
times 100000 $'x = x + 1\n' >body
text statements K0505
{ printf 'x = x' && times 200000 ' + 1'; } >body
text sum K0205
{ printf 'x = ' && times 100000 '(' && printf x && times 100000 ')'; } >body
text parentheses K0205
{ printf 'x = ' && times 100000 '- ' && echo x; } >body
text minus K0205
{ printf 'local n = ' && times 100000 'not ' && echo x; } >body
text nots K0205
{ printf 'local n = ' && times 100000 '{' && times 100000 '}'; } >body
text braces K0205
{ printf 'local s = "a"' && times 100000 ' .. "a"'; } >body
text dots K0205
{ printf 'x = x' && times 100000 ':reshape(16)'; } >body
text methods K0205
{ times 50000 'do ' && times 50000 'end '; } >body
text blocks K0205
{ times 20000 'local f = function() ' && times 20000 'end '; } >body
text functions K0205
{ printf 'if i > 0 then x = x' && times 20000 ' elseif i > 1 then x = x + 1' && echo ' end'; } >body
text elseifs K0205
{ times 2000 'if i > 0 then ' && echo 'x = x + 1' && times 2000 ' end'; } >body
text ifs K0205
{ times 250 'for k in range(0, 1) do ' && echo 'x = x + 1' && times 250 ' end'; } >body
text loops K0602
awk 'BEGIN { for (i = 0; i < 24; i++) printf "local n%d = 0\nfor k in range(0, 1) do ", i
  for (i = 23; i >= 0; i--) printf " n%d = n%d + d.N x = x + 1 end", i, i }' >body
text loops_carry ''
{ printf 'local s = "' && times 2000000 'abcdefgh' && echo '"'; } >body
text string ''
{ printf 'local s = [==[' && times 1000000 $'abcdefgh\n'; } >body
text unfinished_string K0101
{ printf 'local ' && times 1000000 n && echo ' = 1'; } >body
text name ''
{ printf 'local n = ' && times 1000000 9; } >body
text digits ''
awk 'BEGIN { for (i = 0; i < 60000; i++) printf "local v%d = 1\n", i }' >body
text locals K0101
awk 'BEGIN { printf "local t = {"; for (i = 0; i < 300000; i++) printf "%d,", i; print "}" }' >body
text constructor ''
awk 'BEGIN { for (i = 0; i < 50000; i++) printf "x = x + zeros(f32, %d)\n", i + 20 }' >body
text mistakes K0502
times 2000000 '--[==[ c ]==] ' >body
text comments ''
times 3000000 $'\n' >body
text lines ''
{ printf 'local function f(...) return select("#", ...) end f(' && times 100000 '1, ' && echo '1)'; } >body
text arguments ''
awk 'BEGIN { srand(1); for (i = 0; i < 1000000; i++) printf "%c", 1 + int(255 * rand()) }' >body
text noise K0101
head -c 3000000 /dev/zero >body
text zeros K0101

printf '%s passed, %s failed\n' $passed $failed
[ $failed = 0 ] && [ $passed -gt 0 ]
