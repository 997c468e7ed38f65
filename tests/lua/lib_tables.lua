-- table: insert, remove, move, concat, pack, unpack, with plain tables and with metamethods.
local T = require "mod.show"
local show, try, rnd = T.show, T.try, T.random(5)

local function list(n)
  local t = {}
  for i = 1, n do t[i] = i * 10 end
  return t
end
local places = {0, 1, 2, 3, 4, 5, 6, 7, -1, 2.0, "3", 1.5, "x", math.maxinteger, math.mininteger}

-- Random edits.
local t = {}
for _ = 1, 1500 do
  local k, p = rnd(5), places[rnd(#places)]
  if k == 1 then
    print("insert", try(table.insert, t, rnd(100)))
  elseif k == 2 then
    print("insert", show(p), try(table.insert, t, p, rnd(100)))
  elseif k == 3 then
    print("remove", try(table.remove, t))
  elseif k == 4 then
    print("remove", show(p), try(table.remove, t, p))
  elseif #t > 8 then
    t = list(rnd(5))
  end
  print(show(t))
end

for _ = 1, 600 do
  local a, f, e, to = list(rnd(6)), rnd(9) - 3, rnd(9) - 3, rnd(9) - 3
  local b = rnd(2) == 1 and list(2) or nil
  local r = try(function() return table.move(a, f, e, to, b) end)
  print("move", f, e, to, show(a), show(b), r)
end
print(try(table.move, {}, 1, math.maxinteger, 2), try(table.move, {}, 0, math.maxinteger, 2),
  try(table.move, {}, -1, math.maxinteger, 2))
print(try(table.move, {}, math.mininteger, 0, 2), try(table.move, {}, math.maxinteger,
  math.maxinteger, math.maxinteger))
print(try(table.move, {1, 2}, 1, 2, math.maxinteger - 1),
  try(table.move, {1, 2}, 1, 2, math.maxinteger))

for _ = 1, 300 do
  local a = {}
  for i = 1, rnd(5) - 1 do a[i] = ({1, 2.5, "s", "", {}, true})[rnd(rnd(4) == 1 and 6 or 4)] end
  local sep = ({"", ",", "--", 7, nil})[rnd(5)]
  local i, j = rnd(8) - 3, rnd(8) - 3
  print("concat", show(a), try(table.concat, a, sep), i, j, try(table.concat, a, sep, i, j),
    try(table.concat, a, sep, i))
  print("unpack", try(table.unpack, a), try(table.unpack, a, i), try(table.unpack, a, i, j))
end
print(try(table.concat, {}, "x", math.maxinteger, math.maxinteger),
  try(table.concat, {[math.maxinteger] = "last"}, "x", math.maxinteger, math.maxinteger))
print(try(table.concat, {}, "x", 1, 0), try(table.concat, {}, "x", math.maxinteger,
  math.mininteger))
print(try(table.unpack, {}, 1, 1e8), try(table.unpack, {}, math.mininteger, math.maxinteger),
  try(table.unpack, {1, 2}, math.maxinteger, math.maxinteger))
print(try(table.unpack, {}, 0, -1), try(table.unpack, {}, math.maxinteger, 1),
  select("#", table.unpack({}, 1, 250)))
print(show(table.pack()), show(table.pack(nil, 1, nil)), table.pack(nil, nil).n)
print(select("#", table.unpack({n = 3}, 1, 3)), table.unpack({1, nil, 3}, 1, 3))

-- Wrong arguments.
local odd = {nil, true, 12, "text", {}, print}
for _, name in ipairs {"insert", "remove", "move", "concat", "unpack", "sort"} do
  print(name, (try(table[name]):gsub("^error: attempt.*", "error: attempt")))
  for i = 1, 6 do
    print(name, i, (try(table[name], odd[i]):gsub("error: attempt.*", "error: attempt")),
      try(table[name], {}, odd[i]), try(table[name], {1}, 1, odd[i]),
      try(table[name], {1}, 1, 1, odd[i]), try(table[name], {1}, 1, 1, 1, odd[i]))
  end
end
print(try(table.insert, {}), try(table.insert, {}, 1, 2, 3), try(table.insert, {}, 1, 2, 3, 4))

-- Tables that act.
local function proxy(of, log)
  return setmetatable({}, {
    __index = function(_, k) log[#log + 1] = "r" .. tostring(k) return of[k] end,
    __newindex = function(_, k, v) log[#log + 1] = "w" .. tostring(k) of[k] = v end,
    __len = function() log[#log + 1] = "#" return #of end,
  })
end
local function acting(f)
  local of, log = list(4), {}
  local r = try(f, proxy(of, log))
  print(r, show(of), table.concat(log, " "))
end
acting(function(p) table.insert(p, 7) end)
acting(function(p) table.insert(p, 2, 7) end)
acting(function(p) return table.remove(p) end)
acting(function(p) return table.remove(p, 1) end)
acting(function(p) return table.concat(p, ",") end)
acting(function(p) return table.unpack(p) end)
acting(function(p) table.move(p, 1, 3, 2) end)
acting(function(p) table.move(p, 2, 4, 1) end)
acting(function(p) return #table.move({1, 2, 3}, 1, 3, 3, p) end)
acting(function(p) table.sort(p, function(a, b) return a > b end) end)
print(try(table.insert, setmetatable({}, {__len = function() return "x" end}), 1),
  try(table.unpack, setmetatable({}, {__len = function() return 2.0 end})))
print(try(table.unpack, setmetatable({}, {__len = function() return 2.5 end})),
  try(table.concat, setmetatable({}, {__len = function() return "2" end}), "-"))

-- Writes that go through chains of __newindex.
local base = {}
local mid = setmetatable({}, {__newindex = base})
local top = setmetatable({}, {__newindex = mid})
table.insert(top, "a")
print(show(base), show(mid), show(top), rawlen(top))
mid[1] = nil
rawset(mid, 1, "own")
table.insert(top, "b")
print(show(base), show(mid), show(top))
local loop = {}
setmetatable(loop, {__newindex = loop})
print((try(table.insert, loop, 1):gsub("chain too long.*", "chain too long")))
