-- string: len, sub, byte, char, rep, reverse, upper, lower, and the arithmetic of strings.
local T = require "mod.show"
local try, rnd = T.try, T.random(7)

local texts = {"", "a", "ab", "hello", "a\0b", "\255\0\1", "ABCxyz", "  pad ",
  ("0123456789"):rep(3)}
local numbers = {0, 1, 2, 3, 5, -1, -2, -3, -30, 30, 31, 7.0, 2.5, "2", "-1", "0x2", "x",
  math.maxinteger, math.mininteger, 1e300, 0/0}
local odd = {nil, true, false, {}, print, 12, 1.5}

for _, s in ipairs(texts) do
  print(try(string.len, s), try(string.reverse, s), try(string.upper, s), try(string.lower, s))
  for _ = 1, 60 do
    local i, j = numbers[rnd(#numbers)], numbers[rnd(#numbers)]
    print("sub", T.show(s), T.show(i), T.show(j), try(string.sub, s, i, j), try(string.sub, s, i))
    print("byte", T.show(i), T.show(j), try(string.byte, s, i, j), try(string.byte, s, i))
  end
end

for _, s in ipairs {"", "a", "xyz", "\0"} do
  for _, n in ipairs {-1, 0, 1, 2, 3, 7, "2", 2.0, 2.5, "x"} do
    for _, sep in ipairs {"", ",", "--", 1, false, {}} do
      print("rep", T.show(s), T.show(n), T.show(sep), try(string.rep, s, n, sep))
    end
    print(try(string.rep, s, n))
  end
end
print(try(string.rep, "x", 1 << 31), try(string.rep, "xy", math.maxinteger, ","))
print(try(string.rep, ("ab"):rep(1 << 15), 1 << 20))

for _, name in ipairs {"len", "sub", "byte", "char", "rep", "reverse", "upper", "lower"} do
  print(name, try(string[name]))
  for i = 1, 7 do
    print(name, i, try(string[name], odd[i]), try(string[name], odd[i], 1),
      try(string[name], "a", odd[i]),
      try(string[name], "a", 1, odd[i]))
  end
end
print(try(string.char), try(string.char, 0, 65, 255), try(string.char, 65, 256),
  try(string.char, -1))
print(try(string.char, "66", 67.0), try(string.char, 1.5))
print(try(string.byte, ("x"):rep(1000), 1, -1))

-- How a call is written shows in its messages.
print(try(function() return ("x"):rep({}) end))
print(try(function() return ("x"):rep() end))
print(try(function() return string.rep() end))
print(try(function() return string.rep("x") end))
print(try(function() local rep = string.rep return rep("x", {}) end))
print(try(function() local t = {go = string.rep} return t.go({}) end))
print(try(function() local t = {go = string.rep} return t:go(1) end))
print(try(function() return ("x"):nothing() end))
print(try(function() return ("x").y.z end))

-- Strings as numbers, numbers as strings.
local values = {1, 2.5, "3", "0x10", "1e1", " 7 ", "abc", "", "9007199254740993", "1.", ".5",
  "0x.8p1", "1 2"}
local ops = {
  add = function(a, b) return a + b end, sub = function(a, b) return a - b end,
  mul = function(a, b) return a * b end, div = function(a, b) return a / b end,
  idiv = function(a, b) return a // b end, mod = function(a, b) return a % b end,
  pow = function(a, b) return a ^ b end, unm = function(a) return -a end,
  concat = function(a, b) return a .. b end, lt = function(a, b) return a < b end,
  eq = function(a, b) return a == b end, le = function(a, b) return a <= b end,
}
for _, name in ipairs {"add", "sub", "mul", "div", "idiv", "mod", "pow", "unm", "concat", "lt",
  "le", "eq"} do
  for _ = 1, 30 do
    local a, b = values[rnd(#values)], values[rnd(#values)]
    local r = try(ops[name], a, b)
    if r:find("^error: attempt to perform") then r = "error: arithmetic" end -- names the variable
    print(name, T.show(a), T.show(b), r)
  end
end
for _, s in ipairs(values) do print(T.show(s), try(tonumber, s), try(math.tointeger, s)) end
for _, x in ipairs {1, 1.0, -0.0, 1e15, 1e16, 2^53, 2^63, 1/0, -1/0, 0.1, 1e-7, 123456789012345678,
  3.14159265358979} do
  print(tostring(x), x .. "", ("%s"):format(x), #tostring(x))
end
