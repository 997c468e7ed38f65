-- string.format: random specifications and values.
local T = require "mod.show"
local try, rnd = T.try, T.random(11)

local letters = {"d", "i", "u", "c", "o", "x", "X", "a", "A", "e", "E", "f", "g", "G", "s", "q",
  "F", "y", "n", "l", ""}
local flags = {"", "", "", "-", "+", "#", "0", " ", "-+", "0#", "- +#0"}
local widths = {"", "", "", "1", "5", "12", "99", "100", "05", "0"}
local precisions = {"", "", "", ".", ".0", ".3", ".10", ".99", ".100", ".-1"}
local values = {0, 1, -1, 65, 255, 3.0, 2.5, -2.5, 1e10, 1e308, 5e-324, 1/0, -1/0, "10", "abc",
  "x\0y", "",
  ("long "):rep(30), math.maxinteger, math.mininteger, true, false, {1}, "0x1p4", "1e2", 123456.789}

local function clean(s) return (s:gsub("nan", "NAN"):gsub("table: 0x%x+", "TABLE")) end
for _ = 1, 6000 do
  local spec = "%" .. flags[rnd(#flags)] .. widths[rnd(#widths)] .. precisions[rnd(#precisions)]
    .. letters[rnd(#letters)]
  local v = values[rnd(#values)]
  local around = rnd(4) == 1 and "<" .. spec .. ">%%" or spec
  if not (spec:find "[psq]$" and type(v) == "table") then
    print(around, T.show(v), clean(try(string.format, around, v)))
  end
end

print(try(string.format), try(string.format, {}), try(string.format, "%d"),
  try(string.format, "%d %d", 1))
print(try(string.format, 12), try(string.format, "%%"), try(string.format, "%"),
  try(string.format, "a%"))
print(try(string.format, "%s %s %s %s", nil, true, false, 1.5), try(string.format, "%q", nil),
  try(string.format, "%q", {}))
print(try(string.format, "%s", setmetatable({}, {__tostring = function() return "shown" end})))
print(try(string.format, "%s", setmetatable({}, {__tostring = function() return {} end})))
print(try(string.format, "%10s|", setmetatable({}, {__tostring = function() return "shown" end})))
print((string.format("%s", setmetatable({}, {__name = "Kind"})):gsub("0x%x+", "0x")))
for _, s in ipairs {"a\nb", 'say "hi"', "back\\slash", "\0", "\0001", "\r\t\1272", "\200\255",
  "tab\t9"} do
  print(string.format("%q", s))
end
for _, x in ipairs {0, 1, -1, 1.0, 0.1, -0.0, 1e100, 1/0, -1/0, math.mininteger, math.maxinteger,
  2^53} do
  print(string.format("%q", x))
end
print(string.format("%q", 0/0))
local t = {}
print(string.format("%p", t) == tostring(t):match("0x%x+"), string.format("%p", 1),
  string.format("%10p|%-10p|", nil, true))
print(string.format("%p", t) == string.format("%p", {}),
  string.format("%p", print) == string.format("%p", print))
print(try(string.format, "%-+ #0-+ #0-+ #0-+ #05d", 1),
  try(string.format, "%                       d", 1))
print(#string.format("%99.99f", -1e308), #string.format("%s", ("x"):rep(5000)),
  #string.format("%-99s", "x"))
