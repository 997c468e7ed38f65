-- Basic functions: conversions, select, raw access, metatables, errors, iteration.
local T = require "mod.show"
local show, try, rnd = T.show, T.try, T.random(17)

-- tonumber
local texts = {"10", " 10 ", "0x1F", "-0x1f", "1e3", "1e", "0x", "0x1p-2", "inf", "nan", "1_0",
  "1 0", "", " ", "-", "+5", "- 5", "5.", ".5", ".", "0b1",
  "zz", "ZZ", "-ff", "  -Ff\t\n", "7fffffffffffffff", "9223372036854775807", "9223372036854775808",
    "-9223372036854775809", "1e400", "08", "1\0", "0x.1", "1e+5", "1E-5",
  ("1"):rep(60), "ffffffffffffffff"}
for _, s in ipairs(texts) do
  print(show(s), try(tonumber, s))
  for _, base in ipairs {2, 8, 10, 16, 36, 1, 37, 16.0, "10", 2.5, {}} do
    print(show(base), try(tonumber, s, base)) end
end
print(try(tonumber), try(tonumber, nil), try(tonumber, {}), try(tonumber, true), try(tonumber, 5),
  try(tonumber, 5.5), try(tonumber, 10, 16), try(tonumber, {}, 10))
print(try(tonumber, "10", nil), try(tonumber, "1", 1 << 40))

-- tostring, type
for _, v in ipairs {1, 1.0, -0.0, "s", true, false, 1e100, 2^63, 123456789012} do
  print(tostring(v), type(v)) end
print(tostring(nil), type(nil), type(print), type({}), type(type), try(type), try(tostring))
print((tostring({}):gsub("0x%x+", "0x")), (tostring(function() end):gsub("0x%x+", "0x")),
  #tostring(print) > 10)
local named = setmetatable({}, {__name = "Named"})
print((tostring(named):gsub("0x%x+", "0x")), try(string.rep, named))
print(tostring(setmetatable({}, {__tostring = function() return "text" end})),
  try(tostring, setmetatable({}, {__tostring = function() return 5 end})))
print(try(tostring, setmetatable({}, {__tostring = function() end})),
  try(tostring, setmetatable({}, {__tostring = 1})) ~= "")
local a, b = {}, {}
print(tostring(a) == tostring(a), tostring(a) == tostring(b))

-- select
for i = -6, 6 do print(i, try(select, i, "a", "b", "c")) end
print(try(select, "#"), try(select, "#", nil, nil), try(select, "x"), try(select), try(select, 1.5),
  try(select, "2", 1, 2), try(select, {}))
print(select("#", select(2, 1, nil, nil)), select(-1, 1, 2, 3), try(select, math.mininteger, 1),
  try(select, math.maxinteger, 1))

-- raw access
local log = {}
local watched = setmetatable({1, 2}, {__index = function(_, k) log[#log + 1] = k return "made" end,
  __newindex = function() log[#log + 1] = "write" end,
  __len = function() return 99 end, __eq = function() return true end})
print(rawget(watched, 1), rawget(watched, "x"), watched.x, rawlen(watched), #watched,
  rawequal(watched, {}), rawset(watched, "y", 5) == watched, rawget(watched, "y"))
print(show(log), watched == setmetatable({}, getmetatable(watched)), rawequal("a", "a"),
  rawequal(1, 1.0), rawequal(watched, watched))
print(try(rawget), try(rawget, 5), try(rawget, {}), try(rawset, {}, nil, 1),
  try(rawset, {}, 0/0, 1), try(rawset, {}), try(rawset, {}, 1), try(rawset, 1, 1, 1))
print(try(rawlen), try(rawlen, 5), try(rawlen, "abc"), try(rawequal), try(rawequal, 1))

-- metatables
print(getmetatable({}), getmetatable(1), getmetatable("").__index == string, try(getmetatable))
print(try(setmetatable), try(setmetatable, 1, {}), try(setmetatable, {}), try(setmetatable, {}, 1),
  try(setmetatable, {}, nil))
local locked = setmetatable({}, {__metatable = "locked"})
print(getmetatable(locked), try(setmetatable, locked, {}), try(setmetatable, locked, nil))
print(getmetatable(setmetatable({}, {__metatable = false})),
  getmetatable(setmetatable(setmetatable({}, {x = 1}), nil)))

-- error, assert, pcall, xpcall
print(try(error), try(error, nil), try(error, "m", 0), try(error, {1}), try(error, "m"),
  try(error, 5), try(error, true))
print(pcall(error, "plain", 0), select("#", pcall(error)))
print(try(assert), try(assert, false, "why"), try(assert, nil, {1}), try(assert, false),
  try(assert, 1, 2, 3), try(assert, nil, nil), try(assert, false, 7))
print(pcall(pcall), try(pcall), pcall(pcall, error, "x"), try(xpcall), try(xpcall, print),
  try(xpcall, print, 1))
print(xpcall(function(...) return select("#", ...), ... end, print, 1, nil, 3))
print(xpcall(function() error("deep", 0) end, function(m) return "<" .. m .. ">", "dropped" end))
print(xpcall(function() error({code = 7}) end, function(m) return m.code end))
print(xpcall(function() error() end, function(m) return type(m) end))
print(xpcall(error, function(m) return m end, "direct", 0))
print(select("#", pcall(function() return nil, nil, nil end)))
print(pcall(function() local ok, e = pcall(error, "inner", 0) error("outer after " .. e, 0) end))
local function thrower(level) error("at", level) end
for level = 0, 3 do
  local ok, e = pcall(function() thrower(level) end)
  print(level, T.message(e), e:find(":") ~= nil)
end
print(pcall(function() error(setmetatable({}, {__tostring = function() return "custom" end})) end))

-- pairs, ipairs, next
print(try(pairs), try(ipairs), try(next), try(next, {}), try(next, 5), try(next, {7}),
  try(next, {7}, 1), try(next, {}, {}))
print(select("#", pairs({})), select(3, pairs({})), select(3, ipairs({})), ipairs(a) == ipairs(b))
local seen = {}
for k, v in pairs({10, 20, x = 1, y = 2, [2.5] = 3, [true] = 4})
  do seen[#seen + 1] = tostring(k) .. "=" .. v end
table.sort(seen)
print(table.concat(seen, " "))
for i, v in ipairs({1, 2, nil, 4}) do print(i, v) end
for i, v in ipairs(setmetatable({}, {__index = function(_, i) if i < 4 then return i * i end end}))
  do print(i, v) end
for k, v in pairs(setmetatable({}, {__pairs = function(t) return function(_, k) if not k then return
  1, "one" end end, t, nil end})) do print(k, v) end
print(try(function() for _ in pairs(nil) do end end), try(function() for _ in pairs(5) do end end))
print(next({}), next({nil, 2}), type(next), rawequal(next, next))
-- Fields removed and assigned on the way.
local t = {}
for i = 1, 50 do t[i] = i t["k" .. i] = i end
local n = 0
for k, v in pairs(t) do n = n + v t[k] = nil end
print(n, next(t))
for i = 1, 20 do t[i] = i end
n = 0
for k in pairs(t) do t[k] = k * 2 n = n + 1 end
print(n, t[1], t[20])
n = 0
for k, v in next, {1, 2, 3, a = 4, b = 5} do n = n + v end
print(n)
local k, total = nil, 0
repeat
  local v
  k, v = next(t, k)
  if k then total = total + v t[k] = nil end
until not k
print(total, next(t))
n = 0
for _, x in pairs {1, 2, 3} do for _, y in pairs {10, 20, x = x} do n = n + x * y end end
print(n)
local shared = {1, 2, 3, 4}
n = 0
for i in pairs(shared) do for j in next, shared do n = n + i * j end end
print(n)

-- _G
print(_G._G == _G, _VERSION, _G.print == print, type(_G.string))
fresh_global = 5
print(_G.fresh_global, rawget(_G, "fresh_global"), undefined_global)
