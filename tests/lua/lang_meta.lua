-- Metatables: every event, inheritance, proxies.
local T = require "mod.show"
local show, try, list = T.show, T.try, T.list

local log = {}
local function note(...) log[#log + 1] = list(...) end
local function flush() print(table.concat(log, " ; ")) log = {} end

local function operand(v) return type(v) == "table" and (v.name or "table") or show(v) end
local events = {"add", "sub", "mul", "div", "mod", "pow", "unm", "idiv", "band", "bor", "bxor",
  "shl", "shr", "bnot", "concat", "lt", "le", "eq", "len", "call"}
local M = {}
for _, e in ipairs(events) do
  M["__" .. e] = function(a, b, ...) note(e, operand(a), operand(b), ...)
    return e == "len" and 42 or e .. " result" end
end
local A, B, C = setmetatable({name = "A"}, M), setmetatable({name = "B"}, M), {name = "C"}
local function binary(a, b)
  return list(a + b, a - b, a * b, a / b, a % b, a ^ b, a // b, a & b, a | b, a ~ b, a << b, a >> b,
    a .. b)
end
print(binary(A, B)) flush()
print(binary(A, 1)) flush()
print(binary(2.5, A)) flush()
print(binary(A, "s")) flush()
print(binary("7", A)) flush()
print(list(A < B, A <= B, A > B, A >= B, A == B, A ~= B, A == A, A == C, A == 1, A < 1, 1 < A,
  A <= "x", "x" >= A)) flush()
print(-A, ~A, #A, A(1, nil, 3)) flush()
print(1 .. A, A .. "x" .. 1, "a" .. "b" .. A) flush()
print(try(function() return A < C end), try(function() return C < C end),
  try(function() return C .. "x" end), try(function() return -C end))
flush()

-- Results are adjusted: comparisons give booleans, others one value.
local R = setmetatable({}, {
  __lt = function() return nil end, __le = function() return 0 end,
  __eq = function() return "yes" end, __add = function() return 1, 2, 3 end,
  __len = function() return "long", 2 end, __unm = function() end,
  __concat = function() return nil end, __call = function(self, ...) return self ~= nil, ... end,
})
local R2 = setmetatable({}, getmetatable(R))
print(R < R2, R <= R2, R == R2, R ~= R2, list(R + 1), #R, -R, R .. "x", R(1, 2))

-- __index and __newindex.
local base = {greet = function(self) return "hello " .. self.name end, shared = {}}
base.__index = base
local derived = setmetatable({shout = function(self) return self:greet():upper() end}, base)
derived.__index = derived
local o = setmetatable({name = "o"}, derived)
print(o:greet(), o:shout(), o.missing, rawget(o, "greet"), o.shared == base.shared)
local defaults = setmetatable({}, {__index = function(t, k) note("index", k)
  if k == "stored" then rawset(t, k, "kept") end return k end})
print(defaults.a, defaults[1], defaults.stored, defaults.stored, defaults[nil]) flush()
local writes = setmetatable({old = 1}, {__newindex = function(t, k, v) note("newindex", k, v)
  rawset(t, k, v) end})
writes.old = 2 writes.new = 3 writes.new = 4 writes[1.0] = 5
print(writes.old, writes.new, writes[1]) flush()
local store = {}
local redirect = setmetatable({}, {__newindex = store, __index = store})
redirect.x = 1 redirect.y = 2
print(rawget(redirect, "x"), store.x, redirect.y)
local ro = setmetatable({}, {__index = {a = 1}, __newindex = function(_, k) error("read-only field "
  .. k, 2) end})
print(ro.a, try(function() ro.b = 2 end))
local chain = {}
for i = 1, 20 do chain = setmetatable({["k" .. i] = i}, {__index = chain}) end
print(chain.k1, chain.k10, chain.k20, chain.k21)
print(try(function() return (nil).x end), try(function() return (5).x end),
  try(function() local t t.x = 1 end), try(function() return ("x").y end),
  try(function() return ("x").len end) ~= "")

-- __call with other callables inside; chains.
local callable = setmetatable({}, {__call = function(self, ...) return "called", ... end})
print(callable(1, 2), pcall(callable, 3), select("#", callable()))
local twice = setmetatable({}, {__call = callable})
print(twice(5) ~= nil, (twice(5)))
print(try(function() setmetatable({}, {__call = 5})() end) ~= "")

-- __close.
do
  local function closing(name)
    return setmetatable({}, {__close = function(_, e) note(name, e) end})
  end
  do
    local a <close> = closing "a"
    local b <close> = closing "b"
    local c <close> = nil
    local d <close> = false
    note "body"
  end
  flush()
  local function f() local x <close> = closing "x" return "value", #log end
  print(f()) flush()
  print(try(function() local x <close> = closing "x" local y <close> = closing "y" error("failed",
    0) end)) flush()
  for i = 1, 2 do local z <close> = closing("z" .. i) if i == 2 then break end end
  flush()
  do
    local i = 1
    ::again::
    do local w <close> = closing("w" .. i) i = i + 1 if i <= 3 then goto again end end
  end
  flush()
  print(try(function() local x <close> = 5 end), try(function() local x <close> = {} end))
  print(try(function() local x <close> = setmetatable({}, {__close = function() error("in close", 0)
    end}) error("first", 0) end))
  print(try(function() local x <close> = setmetatable({}, {__close = function(_, e) note("saw", e)
    end}) local y <close> = setmetatable({}, {__close = function() error("in y", 0) end}) end))
    flush()
end

-- __tostring, __name, __metatable, __pairs, __len in library functions.
print(tostring(setmetatable({}, {__tostring = function(t) return "<" .. type(t) .. ">" end})))
local P = setmetatable({}, {__pairs = function() return function(_, k) k = (k or 0) + 1
  if k <= 3 then return k, k * k end end end})
for k, v in pairs(P) do note(k, v) end
flush()
print(#setmetatable({}, {__len = function() return 7 end}), try(function() return #5 end), #"abc",
  #{1, 2, 3})

-- Classes.
local function class(parent)
  local c = {}
  c.__index = c
  setmetatable(c, {__index = parent, __call = function(k, ...) local self = setmetatable({}, k)
    if k.init then k.init(self, ...) end return self end})
  return c
end
local Shape = class()
function Shape:init(n) self.n = n end
function Shape:area() return 0 end
function Shape:describe() return ("%s %g"):format(self.n, self:area()) end
local Square = class(Shape)
function Square:init(s) Shape.init(self, "square") self.s = s end
function Square:area() return self.s ^ 2 end
Square.__eq = function(x, y) return x.s == y.s end
Square.__lt = function(x, y) return x.s < y.s end
Square.__le = function(x, y) return x.s <= y.s end
local Disc = class(Shape)
function Disc:init(r) Shape.init(self, "disc") self.r = r end
function Disc:area() return self.r * self.r * 3 end
print(Shape("plain"):describe(), Square(3):describe(), Disc(2):describe(), Square(2) == Square(2),
  Square(1) < Square(2), Square(3) <= Square(2))
local list_of = {Square(3), Square(1), Square(2)}
table.sort(list_of)
print(list_of[1].s, list_of[2].s, list_of[3].s)
-- Vectors and matrices.
local V = {}
V.__index = V
local function vec(x, y) return setmetatable({x = x, y = y}, V) end
V.__add = function(a, b) return vec(a.x + b.x, a.y + b.y) end
V.__mul = function(a, b) if type(a) == "number" then a, b = b, a end if type(b) == "number" then
  return vec(a.x * b, a.y * b) end return a.x * b.x + a.y * b.y end
V.__unm = function(a) return vec(-a.x, -a.y) end
V.__tostring = function(a) return "(" .. a.x .. "," .. a.y .. ")" end
V.__concat = function(a, b) return tostring(a) .. tostring(b) end
V.__len = function(a) return a.x + a.y end
V.__idiv = function(a, n) return vec(a.x // n, a.y // n) end
print(tostring(vec(1, 2) + vec(3, 4) * 2), vec(1, 2) * vec(3, 4), tostring(2 * -vec(1, 2)),
  vec(1, 2) .. "!" .. vec(3, 4), #vec(3, 4), tostring(vec(7, 9) // 2))
