-- Errors: what they say, where they go, what can be caught.
local T = require "mod.show"
local show, try = T.show, T.try

local up = nil
local t = {a = {}}
local cases = {
  function() local x x.y = 1 end, function() local x return x.y end, function() return up.y end,
    function() up.y = 1 end, function() return glob.y end,
  function() return t.b.c end, function() t.b.c = 1 end, function() return t.a.b.c end, function()
    local x = 5 return x.y.z end, function() t[nil] = 1 end, function() t[0/0] = 1 end,
  function() local x return x() end, function() up() end, function() glob() end, function() t.b()
    end, function() t:b() end, function() t.a.b() end, function() (1)() end,
  function() return 1 + nil end, function() local x return x + 1 end, function() return up * 2 end,
    function() return t.a - 1 end, function() return glob / 1 end, function() return 2 ^ {} end,
    function() return -{} end,
  function() return 1 .. {} end, function() return "a" .. nil end, function() local x
    return x .. "a" end, function() return t.a .. "x" end,
  function() return 1 < "x" end, function() return {} < {} end, function() return nil < 1 end,
    function() return print <= print end, function() return {} >= 1 end, function()
    return "a" > true end,
  function() return #nil end, function() local x = 5 return #x end, function() return 1 & 1.5 end,
    function() return 1.5 | 1 end, function() return 1 << "x" end, function() return 1 & {} end,
    function() return ~1.5 end, function() return 2^63 | 0 end,
  function() return 1 // 0 end, function() return 1 % 0 end,
  function() error("message") end, function() error("message", 0) end, function()
    error("message", 2) end, function() error({code = 1}) end, function() error(nil) end, function()
    error() end, function() error(5) end, function() error(true) end,
  function() assert(false) end, function() assert(nil, "why") end, function() assert(false, {1})
    end, function() assert(1 == 1, "fine") return "ok" end,
  function() string.rep() end, function() ("x"):rep() end, function() setmetatable(1, {}) end,
    function() return ("x"):bad() end, function() return math.floor("x") end, function()
    return #string.rep("x", -1) end,
  function() for i = 1, "x" do end end, function() for i = "a", 2 do end end, function() for i = 1,
    2, {} do end end, function() for i = 1, 2, 0 do end end,
  function() local a <close> = 1 end, function() return table.concat({1, {}, 3}) end, function()
    return tostring() end, function() return next({}, "nokey") end,
}
for i, f in ipairs(cases) do
  local r = try(f)
  if i == #cases then r = "next: " .. #r // 100 end -- here, `next` accepts any key it can order
  print(i, r)
end

-- Nesting and rethrowing.
print(pcall(pcall, error, "x"))
print(pcall(function() local ok, e = pcall(error, "inner", 0) error("[" .. e .. "]", 0) end))
local e1 = setmetatable({code = 7}, {__tostring = function(e) return "E" .. e.code end})
local ok, e2 = pcall(error, e1)
print(ok, e2 == e1, tostring(e2))
local function finally(f, cleanup) local r = table.pack(pcall(f)) cleanup()
  if not r[1] then error(r[2], 0) end return table.unpack(r, 2, r.n) end
local trace = {}
print(pcall(finally, function() trace[#trace + 1] = "work" error("bad", 0) end, function()
  trace[#trace + 1] = "clean" end), table.concat(trace, ","))
print(finally(function() return 1, nil, 3 end, function() end))
print(xpcall(function() local x = nil; return x.y end, function(m)
  return (T.message(m):gsub("attempt", "tried")) end))
print(xpcall(function(a, b) return a + b end, print, 3, 4))
print(select("#", xpcall(function() end, print)), xpcall(error, function(m) return m, "extra" end,
  "e", 0))
print(pcall(xpcall, error), pcall(xpcall, error, nil) == false)
-- State survives.
local n = 0
for i = 1, 50 do
  local ok = pcall(function()
    n = n + 1
    local function deep(k) if k == 0 then error("bottom") end local x = {} deep(k - 1) return x end
    deep(i)
  end)
  assert(not ok)
end
print(n)
-- Errors in metamethods, iterators, comparators.
print(try(function() return setmetatable({}, {__index = function() error("in index", 0) end}).x
  end))
print(try(function() return setmetatable({}, {__add = function() error("in add", 0) end}) + 1 end))
print(try(function() for _ in function() error("in iterator", 0) end do end end))
print(try(table.sort, {3, 2, 1}, function() error("in comparator", 0) end))
print(try(string.gsub, "abc", "%w", function() error("in replacement", 0) end))
print(try(tostring, setmetatable({}, {__tostring = function() error("in tostring", 0) end})))
-- The level of an error.
local function checked(x) if type(x) ~= "number" then error("number wanted", 2) end return x end
local ok1, m1 = pcall(function() local r = checked("x") return r end)
print(ok1, T.message(m1), m1:match(":%d+:") ~= nil)
local function wrapped(x) error(x, 0) end
print(pcall(wrapped, "no place"))
