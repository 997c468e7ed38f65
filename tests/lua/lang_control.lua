-- Loops, goto, blocks.
local T = require "mod.show"
local show, try = T.show, T.try

-- Numeric for.
local function count(a, b, c)
  local out = {}
  for i = a, b, c do
    out[#out + 1] = show(i)
    if #out >= 6 then out[#out + 1] = "..." break end
  end
  return table.concat(out, " ")
end
local ends = {0, 1, 3, -1, -3, 1.0, 2.5, -0.5, math.maxinteger, math.mininteger,
  math.maxinteger - 2, math.mininteger + 2, 1/0, -1/0, 1e18, 2^63, -2^63, "3", "x", {}}
local steps = {1, -1, 2, -2, 0.5, -0.5, 1.0, 3.7, math.maxinteger, math.mininteger, 1e18, 0, 0.0,
  1/0, "1"}
for _, a in ipairs(ends) do
  for _, b in ipairs(ends) do
    print(show(a), show(b), try(count, a, b, 1), try(count, a, b, -1))
  end
end
for _, a in ipairs {0, 1, -1, 1.5, math.maxinteger, math.mininteger} do
  for _, b in ipairs {0, 10, -10, 2.5, math.maxinteger, math.mininteger, 1/0} do
    for _, c in ipairs(steps) do print(show(a), show(b), show(c), try(count, a, b, c)) end
  end
end
print(try(count, 1, 0/0), try(count, 0/0, 1), try(count, 1, 2, 0/0))
for i = 3, 1 do print("never", i) end
for i = 1, 3 do local j = i i = i * 10 print(j, i) end
local from, to, by = 1, 5, 2
for i = from, to, by do from, to, by = 100, 100, 100 print(i) end

-- while, repeat.
local n = 0
while n < 5 do
  n = n + 1
  if n == 2 then goto next_one end
  if n == 4 then break end
  print("while", n)
  ::next_one::
end
repeat
  local last = n
  n = n - 1
until last <= 1 or n == -100
print(n)
repeat local a <const> = n n = n + 1 if n > 3 then break end until a > 10
print(n)
while true do
  while true do n = n + 1 if n > 10 then break end end
  if n > 10 then break end
end
print(n)

-- Generic for.
for a, b, c, d in function(s, k) if k < 3 then return k + 1, k * 2 end end, nil, 0 do
  print(a, b, c, d) end
local function upto(n) return function(_, i) i = i + 1 if i <= n then return i end end, nil, 0 end
for i in upto(3) do for j in upto(i) do io_ = j print(i, j) end end
for k in pairs({}) do print("never", k) end
do
  local log = {}
  local function closing(name) return setmetatable({},
    {__close = function(_, e) log[#log + 1] = name .. ":" .. tostring(e) end}) end
  for i in function(_, i) i = i + 1 if i < 4 then return i end end, nil, 0, closing("loop")
    do log[#log + 1] = tostring(i) end
  for i in function(_, i) return i + 1 end, nil, 0, closing("broken") do if i == 3 then break end
    end
  local function returns() for i in function(_, i) return i + 1 end, nil, 0, closing("returned") do
    if i == 2 then return i end end end
  log[#log + 1] = tostring(returns())
  pcall(function() for i in function(_, i) return i + 1 end, nil, 0, closing("failed")
    do error("stop", 0) end end)
  print(table.concat(log, " "))
end
print(try(function() for i in 5 do end end), try(function() for i in nil do end end),
  try(function() for i = 1, nil do end end), try(function() for i = {}, 2 do end end))

-- goto.
do
  local i = 1
  ::top::
  if i <= 3 then print("top", i) i = i + 1 goto top end
  for a = 1, 3 do
    for b = 1, 3 do
      if b == 2 then goto continue_outer end
      if a == 3 then goto done end
      print(a, b)
    end
    ::continue_outer::
  end
  ::done::
end
do -- a fresh local each time round, also for closures
  local fs = {}
  do
    local k = 0
    ::again::
    local x = k
    fs[#fs + 1] = function() x = x + 10 return x end
    k = k + 1
    if k < 3 then goto again end
  end
  for i = 1, 3 do print(fs[i](), fs[i]()) end
end
do
  goto skip
  print("skipped")
  ::skip::
end
do local function f(x)
    if x == 1 then goto one elseif x == 2 then goto two else goto other end
    ::one:: do return "one" end
    ::two:: do return "two" end
    ::other:: return "other"
  end
  print(f(1), f(2), f(3))
end
do -- a label at the end of a block sees no locals after it
  local t = {}
  for i = 1, 5 do
    if i % 2 == 0 then goto continue end
    local sq = i * i
    t[#t + 1] = sq
    ::continue::
  end
  print(table.concat(t, " "))
end
-- if chains
local function kind(x)
  if x == nil then return "nil" elseif x == false then return "false" elseif x == 0 then
    return "zero" elseif not x then return "?" else return "true" end
end
print(kind(), kind(false), kind(0), kind(""), kind({}))
if nil then elseif false then else print("else") end
-- and, or, not
local function say(v) io_ = (io_ or "") .. show(v) return v end
io_ = ""
print(say(nil) and say(1), say(false) or say(2), say(3) and say(4) or say(5), say(nil) and say(6) or
  say(7), not say(8), io_)
print(nil == false, false or nil, nil or false, 0 and 1, "" and 2, nil and io_.x.y, true or io_.x.y)
