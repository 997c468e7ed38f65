-- Patterns: random ones against random texts, through find, match, gmatch and gsub.
local T = require "mod.show"
local try, rnd = T.try, T.random(2024)

local items = {"a", "b", "c", ".", "%a", "%d", "%s", "%w", "%A", "%D", "%%", "%.", "[ab]", "[^a]",
  "[a-c]", "[%a_]", "[^%s]",
  "[]a]", "[^]]", "[a-]", "[%]]", "%x", "%l", "%u", "%p", "%c", "%g", "%z"}
local suffixes = {"", "", "", "*", "+", "-", "?"}
local letters = {"a", "b", "c", "1", "2", " ", "_", "]", "(", ")", "A", "%", "-", "^", "$", "\n"}

local function text()
  local t = {}
  for i = 1, rnd(14) - 1 do t[i] = letters[rnd(rnd(3) == 1 and #letters or 4)] end
  return table.concat(t)
end

local function pattern()
  local t, open, total = {}, 0, 0
  if rnd(5) == 1 then t[1] = "^" end
  for _ = 1, rnd(5) do
    local k = rnd(16)
    if k == 1 and total < 4 then
      t[#t + 1] = "("
      open, total = open + 1, total + 1
    elseif k == 2 and open > 0 then
      t[#t + 1] = ")"
      open = open - 1
    elseif k == 3 then
      t[#t + 1] = "()"
      total = total + 1
    elseif k == 4 then
      t[#t + 1] = "%" .. rnd(3)
    elseif k == 5 then
      t[#t + 1] = "%b()"
    elseif k == 6 then
      t[#t + 1] = "%f" .. ({"[a]", "[%a]", "[^%w]", "[%z]"})[rnd(4)]
    elseif k == 7 and rnd(6) == 1 then
      t[#t + 1] = ({"[", "%", "%f", "%b", "[a", "(", ")", "[^", "[%", "%bx", "[]", "%0"})[rnd(12)]
    else
      t[#t + 1] = items[rnd(#items)] .. suffixes[rnd(#suffixes)]
    end
  end
  for _ = 1, open do if rnd(8) > 1 then t[#t + 1] = ")" end end
  if rnd(6) == 1 then t[#t + 1] = "$" end
  return table.concat(t)
end

local function matches(s, p, init)
  local out = {}
  for a, b, c in string.gmatch(s, p, init) do
    out[#out + 1] = T.list(a, b, c)
    if #out > 40 then break end
  end
  return table.concat(out, ";")
end

local templates = {"", "x", "<%0>", "%1", "%2%1", "%%", "%", "%x", "[%0%0]", 7}
local table_of = {a = "A", b = false, ab = 12, c = true, ["1"] = {}, [""] = "-"}
local function of(a, b)
  if a == "a" then return nil elseif a == "b" then return false elseif a == 1 then return "one" end
  return b
end
for _ = 1, 4000 do
  local s, p = text(), pattern()
  local init = rnd(4) == 1 and rnd(20) - 8 or nil
  print(T.show(s), T.show(p), init)
  print("", try(string.find, s, p, init), try(string.match, s, p, init))
  print("", try(matches, s, p, init))
  local n = rnd(3) == 1 and rnd(4) - 1 or nil
  print("", try(string.gsub, s, p, templates[rnd(#templates)], n))
  print("", try(string.gsub, s, p, rnd(2) == 1 and table_of or of, n))
  if rnd(4) == 1 then print("", try(string.find, s, p, init, true)) end
end

-- Plain text.
for _, c in ipairs {{"abcabc", "c"}, {"abcabc", ""}, {"", ""}, {"", "a"}, {"aaab", "aab"},
  {"a.b", "."}, {"a\0b\0c", "\0c"},
  {"x%dy", "%d"}, {"aaaaaaaaab", "aaab"}} do
  for init = -8, 8 do
    print(try(string.find, c[1], c[2], init, true), try(string.find, c[1], c[2], init))
  end
end
-- Zero bytes, classes of every byte.
print(try(string.find, "a\0b", "\0"), try(string.find, "a\0b", "%z"),
  try(string.gsub, "a\0b\0", "%z", "0"), try(string.match, "\0\0a", "[\0]+"))
for _, class in ipairs {"a", "c", "d", "g", "l", "p", "s", "u", "w", "x", "A", "C", "D", "G", "L",
  "P", "S", "U", "W", "X"} do
  local n, sum = 0, 0
  for b = 0, 127 do
    if string.char(b):find("^%" .. class .. "$") then n, sum = n + 1, sum + b end
  end
  print(class, n, sum)
end
-- Arguments.
for _, name in ipairs {"find", "match", "gmatch", "gsub"} do
  print(name, try(string[name]), try(string[name], "a"), try(string[name], {}, "a"),
    try(string[name], "a", {}), try(string[name], "a", "a", {}))
  print(name, try(string[name], "a", "a", 1.5), try(string[name], 12, 1),
    try(string[name], "a", true))
end
print(try(string.gsub, "abc", "%w", "x", 1.5), try(string.gsub, "abc", "%w", print, "x"),
  try(string.gsub, "abc", "%w", true))
print(try(string.gsub, "abc", "b", function() return {} end),
  try(string.gsub, "abc", "b", function() error("inside", 0) end))
print(try(string.gsub, "abc", "", "-"), try(string.gsub, "", "", "-"),
  try(string.gsub, "abc", "^", ">"), try(string.gsub, "abc", "$", "<"))
print(try(string.gsub, "hello world", "o", "0", -1), try(string.gsub, "hello world", "o", "0", 1),
  try(string.gsub, "abc", "%w", "%0%0", math.maxinteger))
print(try(string.gsub, "abc def", "(%w+) (%w+)", "%2 %1"), try(string.gsub, "abc", "(b)()", "%1%2"))
print(try(string.gsub, "abc", "b", setmetatable({}, {__index = function(_, k) return k
  .. "!" end})))
-- Limits.
print(try(string.find, ("x"):rep(300), ("x?"):rep(300) .. ("x"):rep(300)))
print(try(string.match, ("x"):rep(40), ("(x)"):rep(32)),
  try(string.match, ("x"):rep(40), ("(x)"):rep(33)))
print(try(string.find, "b", ("a*"):rep(400)),
  try(string.find, ("a"):rep(250), ("a-"):rep(250) .. "b"))
print(#string.match(("a"):rep(100000), ".-$"), try(string.find, ("a"):rep(5000) .. "b", ".-b"))
-- An iterator keeps its place, and can be carried around.
local it = ("one two  three"):gmatch("%a+")
print(it(), it())
print((function(f) return f(), f(), f() end)(it))
for k, v in ("a=1, b=2"):gmatch("(%w+)=(%w+)") do print(k, v) end
for p in ("abc"):gmatch("()") do io_write = p print(p) end
