-- math: every function but the random ones, on values of all kinds.
local T = require "mod.show"
local show, try, rnd = T.show, T.try, T.random(3)

local values = {0, 1, -1, 2, 3, 7, -7, 10, 0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e10, 1e300,
  -1e300, 2^53, 2^63, -2^63, 2^64,
  1/0, -1/0, 0/0, math.maxinteger, math.mininteger, math.maxinteger - 1, "3", "0x10", "2.5", "x",
    "", true, {}, print, 1e-300}
local names = {"abs", "acos", "asin", "atan", "ceil", "cos", "deg", "exp", "floor", "fmod", "log",
  "max", "min", "modf", "rad",
  "sin", "sqrt", "tan", "tointeger", "type", "ult", "cosh", "sinh", "tanh", "pow", "log10", "frexp"}
for _, name in ipairs(names) do
  local f = math[name]
  -- has two names in stock Lua
  if name == "atan" then f = function(...) return math.atan(...) end end
  print(name, try(f), try(f, nil), try(f, nil, 1))
  for _, v in ipairs(values) do print(name, show(v), try(f, v)) end
  for _ = 1, 120 do
    local a, b = values[rnd(#values)], values[rnd(#values)]
    print(name, show(a), show(b), try(f, a, b))
  end
end
for _ = 1, 300 do
  local a, b, c = values[rnd(28)], values[rnd(28)], values[rnd(#values)]
  print(try(math.max, a, b, c), try(math.min, a, b, c), try(math.fmod, a, b))
end
print(math.pi, math.huge, -math.huge, math.maxinteger, math.mininteger)
print(math.type(math.pi), math.type(math.maxinteger), math.maxinteger + 1 == math.mininteger)
print(try(math.ldexp, 1, 10), try(math.ldexp, 0.5, -3), try(math.ldexp, 1, "x"))
print(try(math.log, 8, 2), try(math.log, 100, 10), try(math.log, 27, 3), try(math.log, 2, 0),
  try(math.log, 1, 1))
print(try(function() return math.floor({}) end), try(function() return math.max(1, "x") end),
  try(function() local m = math.abs return m() end))
