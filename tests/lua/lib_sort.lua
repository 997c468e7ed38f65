-- table.sort: results of consistent comparisons, and what inconsistent ones are told.
local T = require "mod.show"
local show, try, rnd = T.show, T.try, T.random(99)

local function numbers(n, range)
  local t = {}
  for i = 1, n do t[i] = rnd(range) end
  return t
end
local function is_sorted(t, before)
  for i = 2, #t do if before(t[i], t[i - 1]) then return false end end
  return true
end
local function less(a, b) return a < b end
local function more(a, b) return a > b end

for n = 0, 40 do
  local t = numbers(n, 30)
  table.sort(t)
  print(n, table.concat(t, " "))
  t = numbers(n, 30)
  table.sort(t, more)
  print(n, table.concat(t, " "))
end
for _, n in ipairs {99, 100, 101, 102, 500, 3000} do
  for _, range in ipairs {2, 10, 1 << 20} do
    local t = numbers(n, range)
    table.sort(t, less)
    local sum = 0
    for i = 1, n do sum = (sum * 31 + t[i]) & 0xffffffff end
    print(n, range, is_sorted(t, less), sum)
  end
end
-- Shapes that quicksort dislikes.
for _, n in ipairs {10, 200, 2000} do
  local up, down, same, pipe, saw = {}, {}, {}, {}, {}
  for i = 1, n do
    up[i], down[i], same[i], pipe[i], saw[i] = i, -i, 1, i < n / 2 and i or n - i, i % 7
  end
  for _, t in ipairs {up, down, same, pipe, saw} do
    table.sort(t)
    print(n, is_sorted(t, less), t[1], t[n // 2], t[n])
  end
end
-- Elements that compare equal end in the same places (small arrays).
for n = 1, 60 do
  local t = {}
  for i = 1, n do t[i] = {key = rnd(5), id = i} end
  table.sort(t, function(a, b) return a.key < b.key end)
  local out = {}
  for i = 1, n do out[i] = t[i].key .. ":" .. t[i].id end
  print(table.concat(out, " "))
end
-- Comparators that are no order: the same complaint, or the same permutation.
local bad = {
  always = function() return true end,
  never = function() return false end,
  le = function(a, b) return a <= b end,
  ne = function(a, b) return a ~= b end,
  odd = function(a, b) return (a + b) % 2 == 1 end,
}
for _, name in ipairs {"always", "never", "le", "ne", "odd"} do
  for n = 0, 25 do
    local t = numbers(n, 6)
    print(name, n, try(table.sort, t, bad[name]), table.concat(t, " "))
  end
end
-- Errors on the way leave a permutation.
local t = numbers(20, 100)
local calls = 0
print(try(table.sort, t, function(a, b)
  calls = calls + 1
  if calls == 25 then error("enough", 0) end
  return a < b
end), table.concat(t, " "))

print(try(table.sort, {3, "x", 1}), try(table.sort, {{}, {}}), try(table.sort, {true, false}),
  try(table.sort, {1, nil, 3}))
print(try(table.sort, {2, 1}, 5), try(table.sort, {1}, 5), try(table.sort, {}, "x"),
  try(table.sort))
local words = {"b", "a", "c", "aa", "", "B", "10", "9"}
table.sort(words)
print(table.concat(words, ","))
local mixed = {3, 2.5, -1, 1e10, 2, -0.0, 1/0, -1/0}
table.sort(mixed)
print(show(mixed))
local V = {__lt = function(a, b) return a.v < b.v end}
local vs = {}
for i = 1, 12 do vs[i] = setmetatable({v = rnd(100)}, V) end
table.sort(vs)
for i = 1, 12 do vs[i] = vs[i].v end
print(show(vs))
