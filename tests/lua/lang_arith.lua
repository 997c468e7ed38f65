-- Integers and floats: every operator on every pair, conversions, comparisons, overflow.
local T = require "mod.show"
local show, try, rnd = T.show, T.try, T.random(1)

local values = {0, 1, -1, 2, 3, -3, 7, 10, 255, 1 << 31, 1 << 32, math.maxinteger, math.mininteger,
  math.maxinteger - 1,
  0.0, -0.0, 0.5, -0.5, 1.0, 1.5, -2.5, 3.0, 1e15, 2^53, 2^53 + 1, 2^63, -2^63, 2^64, 1e300, 1e-300,
    1/0, -1/0, 0/0}
local ops = {
  {"+", function(a, b) return a + b end}, {"-", function(a, b) return a - b end},
  {"*", function(a, b) return a * b end}, {"/", function(a, b) return a / b end},
  {"//", function(a, b) return a // b end}, {"%", function(a, b) return a % b end},
  {"^", function(a, b) return a ^ b end}, {"&", function(a, b) return a & b end},
  {"|", function(a, b) return a | b end}, {"~", function(a, b) return a ~ b end},
  {"<<", function(a, b) return a << b end}, {">>", function(a, b) return a >> b end},
  {"==", function(a, b) return a == b end}, {"<", function(a, b) return a < b end},
  {"<=", function(a, b) return a <= b end}, {"~=", function(a, b) return a ~= b end},
  {">", function(a, b) return a > b end}, {">=", function(a, b) return a >= b end},
  {"..", function(a, b) return a .. b end},
}
local function clean(s) return (s:gsub("%-nan", "nan"):gsub("%(local '%w+'%)", "(local)")) end
for _, op in ipairs(ops) do
  for _, a in ipairs(values) do
    local line = {}
    for i, b in ipairs(values) do line[i] = clean(try(op[2], a, b)) end
    print(op[1], show(a), table.concat(line, " "))
  end
end
for _, a in ipairs(values) do
  print(show(a), show(-a), clean(try(function() return ~a end)), math.type(a),
    tostring(a):gsub("%-nan", "nan"))
end
-- Shifts of every distance.
for i = -66, 66 do print(i, 1 << i, -1 >> i, -1 << i, 0x7ff >> i) end
-- Quotient and remainder belong together.
for a = -7, 7 do
  for b = -3, 3 do
    if b ~= 0 then
      assert(a // b * b + a % b == a)
      assert(math.abs(a % b) < math.abs(b) and (a % b == 0 or (a % b < 0) == (b < 0)))
      print(a, b, a // b, a % b, a / b, (a + 0.0) // b, (a + 0.0) % b, a // (b + 0.0),
        a % (b + 0.0))
    end
  end
end
print(math.mininteger // -1, math.mininteger % -1, 7 // 0.0, -7 // 0.0, 0 / 0 ~= 0 / 0,
  5 % math.huge, -5 % math.huge, 5 % -math.huge)
print(try(function() return 1 // 0 end), try(function() return 1 % 0 end), 1 % 0.0 ~= 1 % 0.0)
-- Order of operations.
print(2 ^ 3 ^ 2, -2 ^ 2, not nil == true, 1 .. 2 .. 3, 2 * 3 % 4, -3 % 5, 7 - 2 - 1, 1 << 2 + 1,
  1 | 2 & 3 ~ 4, 5 & 6 == 4 and 1 or 0)
print(1 + 2 < 4 and 2 or 3, not 1 == 2, #"abc" + 1, -"2" + 0, - - 2, not not nil, ~5 & 0xf, 2^-1,
  1 < 2 == true, "a" .. "b" == "ab")
-- Mixed keys and equality.
local t = {}
t[1] = "int" t[2.0] = "float" t[2^53] = "big" t[1.5] = "half"
print(t[1.0], t[2], t[1 << 53], t[3 / 2], 1 == 1.0, "1" == 1, 0 == -0.0, 1/0 == 1/-0.0,
  math.maxinteger + 0.0 == math.maxinteger, math.maxinteger + 0.0 == 2^63)
print(1 < 1.5, 2^53 == 2^53 + 1, (1 << 53) + 1 == 2^53 + 1, (1 << 53) + 1 > 2^53,
  math.maxinteger < 2^63, math.mininteger <= -2^63, math.maxinteger < 1/0)
-- Random integer arithmetic against a model with small parts.
local function mul(a, b) -- by shifts
  local r = 0
  for i = 0, 63 do if (b >> i) & 1 == 1 then r = r + (a << i) end end
  return r
end
local x = 0x123456789abcdef
for _ = 1, 200 do
  x = x * 6364136223846793005 + 1442695040888963407
  local y = x ~ (x >> 29)
  assert(mul(x, y) == x * y and x + y - y == x and (x & y) + (x | y) == x + y and x ~ y == (x | y)
    - (x & y))
end
print(x)
