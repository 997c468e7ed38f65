-- Functions: closures, varargs, multiple results, methods, recursion, tail calls.
local T = require "mod.show"
local show, try, list = T.show, T.try, T.list

-- Closures share and separate variables.
local function counter(n)
  return function(d) n = n + (d or 1) return n end, function() return n end
end
local inc, get = counter(10)
local inc2, get2 = counter(100)
inc() inc(5) inc2()
print(get(), get2())
local fs = {}
for i = 1, 4 do
  local j = i * 10
  fs[i] = {set = function(v) i, j = v, v + 1 end, get = function() return i, j end}
end
fs[2].set(7)
for i = 1, 4 do print(fs[i].get()) end
local a = {}
for _, name in ipairs {"x", "y"} do a[name] = function() name = name .. name return name end end
print(a.x(), a.x(), a.y())
local function nest(x) return function(y) return function(z) x, y, z = x + 1, y + 1, z + 1 return x,
  y, z end end end
local n1 = nest(1)
local n2, n3 = n1(10), n1(20)
print(list(n2(100)), list(n2(100)), list(n3(100)))
do
  local x = 1
  local function f() return x end
  local x = 2
  local function g() x = x + 1 return x end
  print(f(), g(), g(), x, f())
end
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
print(fib(18))
local memo = setmetatable({}, {__index = function(t, n) local v = n < 2 and n or t[n - 1] + t[n
  - 2] rawset(t, n, v) return v end})
print(memo[60])
local even, odd
function even(n) if n == 0 then return true end return odd(n - 1) end
function odd(n) if n == 0 then return false end return even(n - 1) end
print(even(100), odd(101))
local Y = function(f) return (function(x) return x(x) end)(function(x)
  return f(function(...) return x(x)(...) end) end) end
print(Y(function(self) return function(n) return n == 0 and 1 or n * self(n - 1) end end)(10))
local function compose(...)
  local fns = {...}
  return function(x) for i = #fns, 1, -1 do x = fns[i](x) end return x end
end
print(compose(function(x) return x + 1 end, function(x) return x * 2 end)(5))

-- Varargs.
local function va(...)
  local x, y = ...
  local t = {...}
  local p = {n = select("#", ...), ...}
  return x, y, #t, p.n, (...)
end
print(va()) print(va(nil)) print(va(1)) print(va(1, 2, 3)) print(va(nil, 2))
local function pass(...) return ... end
print(pass(), (pass()), pass(1, 2), (pass(1, 2)), pass(nil, nil))
print(select("#", pass()), select("#", pass(nil)), select("#", (pass())),
  select("#", pass(1, 2), pass(3, 4)))
print(({pass(1, 2, 3)})[3], #{pass(1, 2), pass(3, 4)}, #{pass(1, 2), (pass(3, 4))},
  #{pass(1, 2), n = pass(3, 4)})
local function tail(...) return select(2, ...) end
print(tail(1, 2, 3), tail(1), tail(tail(1, 2, 3, 4)))
local function sum(...)
  local s = 0
  for i = 1, select("#", ...) do s = s + (select(i, ...)) end
  return s
end
print(sum(), sum(1, 2, 3), sum(table.unpack({1, 2, 3, 4, 5})))
local function many(n) local t = {} for i = 1, n do t[i] = i end return table.unpack(t) end
print(select("#", many(200)), sum(many(100)), (select(100, many(200))))
print((function(...) local a, b = ... a = 5 return a, b, ... end)(1, 2))
print((function(a, ...) a = a + 1 return a, ... end)(1, 2, 3))
print(pcall(function(...) return ... end, 1, nil, 3))
print((function(a, b, c) return a, b, c end)(1, pass(2, 3, 4)))
print((function(a, b, c) return a, b, c end)(pass(2, 3, 4), 9))

-- Adjusting to lists of names.
local p, q, r = pass(1, 2)
print(p, q, r)
p, q, r = 0, pass(1, 2, 3)
print(p, q, r)
p, q, r = pass(1, 2), 10
print(p, q, r)
p, q = (pass(1, 2))
print(p, q)
local x1 <const>, x2 <close> = 5, nil
print(x1, x2)

-- Assignment evaluates everything first.
local i, t = 1, {}
i, t[i] = i + 1, 20
print(i, t[1], t[2])
local u, v = 1, 2
u, v = v, u
print(u, v)
do
  local a = {1, 2, 3}
  local k = 1
  k, a[k], a[k + 1] = 2, a[2], a[1]
  print(k, a[1], a[2], a[3])
end
local obj = {count = 0}
function obj:add(n) self.count = self.count + (n or 1) return self end
function obj.new(c) return setmetatable({count = c}, {__index = obj}) end
print(obj:add():add(5).count, obj.new(7):add(3).count, obj.add(obj, 2).count, ("%d"):format(3))
local deep = {a = {b = {}}}
function deep.a.b.f(x) return x end
function deep.a.b:g(x) return self == deep.a.b, x end
print(deep.a.b.f(1), deep.a.b:g(2))
print((("x"):rep(3)), #("x"):rep(4), -("2"):rep(2))

-- Deep recursion and tail calls.
local function depth(n) if n == 0 then return 0 end return 1 + depth(n - 1) end
print(depth(100))
local function loop(n, acc) if n == 0 then return acc end return loop(n - 1, acc + n) end
print(loop(100, 0))
print(pcall(loop, 10, "5"))
local function returns_call() return pass(1, 2, 3) end
print(returns_call())
print((function() return (pass(1, 2, 3)) end)())

-- Functions as values.
print(type(print), pass == pass, pass == function(...) return ... end)
local keyed = {[pass] = "pass", [print] = "print", [keyed or 1] = "one"}
print(keyed[pass], keyed[print], keyed[1])
print(try(function() local f f() end), try(function() undefined_function() end),
  try(function() obj.missing() end), try(function() obj:missing() end))
print(try(function() (nil)() end), try(function() ("x")() end),
  try(function() local t = {} t.x.y() end), try(function() local t = {} t[1]() end))
