-- Random plain programs: generate(seed) gives the text of one. Each prints as it goes and ends by
-- itself; run by stock Lua and by the evaluator it must print the same.
--
-- Variables have a kind (number, string, boolean, list, function), so that most of what is
-- generated makes sense; some expressions are ill-typed on purpose, inside `try`. Left alone is
-- what the manual leaves open: a binary operator whose one operand is a variable that the other
-- operand, a call, assigns.
local T = require "mod.show"

local generate_block

local function new(seed)
  local g = {out = {}, depth = 0, indent = 0, budget = 60, next_id = 0, scopes = {{}},
    functions = 0, breakable = 0}
  local random = T.random(seed)
  for _ = 1, 5 do random(100) end
  function g.pick(n) return random(n) end
  function g.chance(n) return random(n) == 1 end
  function g.one_of(list) return list[random(#list)] end
  function g.put(text) g.out[#g.out + 1] = ("  "):rep(g.indent) .. text end
  function g.fresh(prefix)
    g.next_id = g.next_id + 1
    return prefix .. g.next_id
  end
  return g
end

local kinds = {"n", "n", "n", "s", "b", "l"}

local function declare(g, kind, name, fixed)
  local scope = g.scopes[#g.scopes]
  scope[#scope + 1] = {kind = kind, name = name, fixed = fixed, level = g.functions}
end

local function variable(g, kind, writable)
  local found = {}
  for _, scope in ipairs(g.scopes) do
    for _, v in ipairs(scope) do
      if (kind == nil or v.kind == kind) and not (writable and v.fixed)
        then found[#found + 1] = v.name end
    end
  end
  return #found > 0 and g.one_of(found) or nil
end

local expr = {}

local function value(g, kind, depth)
  depth = depth or 3
  local v = variable(g, kind)
  if v and g.chance(depth > 0 and 3 or 1) then return v end
  return expr[kind](g, depth - 1)
end

-- No literal 0: stock Lua computes x - 0 as x + 0, which turns -0.0 into 0.0.
local numbers = {"1", "2", "3", "7", "-1", "10", "0.5", "2.0", "-3.5", "1e3", "0x1f", "1 << 4",
  "100"}
function expr.n(g, d)
  local k = g.pick(d > 0 and 15 or 1)
  if k <= 3 then return g.one_of(numbers)
  elseif k <= 7 then
    return ("(%s %s %s)"):format(value(g, "n", d), g.one_of {"+", "-", "*", "+", "-"},
      value(g, "n", d))
  elseif k == 8 then return ("(%s %% %s)"):format(value(g, "n", d),
    g.one_of {"7", "3.0", "16", "-5"})
  elseif k == 9 then return ("(%s // %s)"):format(value(g, "n", d), g.one_of {"3", "2.0", "-4"})
  elseif k == 10 then return ("#%s"):format(value(g, g.one_of {"s", "l"}, 0):gsub("^[{\"].*",
    "(%0)"))
  elseif k == 11 then return ("math.%s(%s, %s)"):format(g.one_of {"max", "min"}, value(g, "n", d),
    value(g, "n", d))
  elseif k == 12 then return ("(%s and %s or %s)"):format(value(g, "b", d), value(g, "n", d),
    value(g, "n", d))
  elseif k == 13 then return ("(tonumber(%s) or %s)"):format(value(g, "s", d), value(g, "n", d))
  elseif k == 14 then return ("at(%s, %s)"):format(value(g, "l", d), value(g, "n", d))
  else return ("(-(%s))"):format(value(g, "n", d)) end
end

local strings = {'""', '"a"', '"b"', '"12"', '"x y"', "'q'", "[[long]]", '"\\65\\n"', '"0x10"'}
function expr.s(g, d)
  local k = g.pick(d > 0 and 10 or 1)
  if k <= 3 then return g.one_of(strings)
  elseif k <= 5 then return ("cut(%s .. %s)"):format(value(g, "s", d),
    value(g, g.one_of {"s", "n"}, d))
  elseif k == 6 then return ("tostring(%s)"):format(value(g, g.one_of {"n", "b", "s"}, d))
  elseif k == 7 then return ("(%s):%s()"):format(value(g, "s", d),
    g.one_of {"upper", "lower", "reverse"})
  elseif k == 8 then return ("(%s):sub(%d, %d)"):format(value(g, "s", d), g.pick(5) - 3,
    g.pick(5) - 3)
  elseif k == 9 then return ("(%s or %s)"):format(g.one_of {"nil", "false", value(g, "s", d)},
    value(g, "s", d))
  else
    return ("first((%s):gsub(%s, %s))"):format(value(g, "s", d),
      g.one_of {'"a"', '"%d"', '"(.)(.)"', '"^x"'}, g.one_of {'"<%0>"', '"%%"', '""'})
  end
end

function expr.b(g, d)
  local k = g.pick(d > 0 and 9 or 2)
  if k <= 2 then return k == 1 and "true" or "false"
  elseif k <= 5 then return ("(%s %s %s)"):format(value(g, "n", d),
    g.one_of {"<", "<=", "==", "~=", ">", ">="}, value(g, "n", d))
  elseif k == 6 then return ("(%s %s %s)"):format(value(g, "s", d),
    g.one_of {"<", "==", "~=", ">="}, value(g, "s", d))
  elseif k == 7 then return ("(not %s)"):format(value(g, "b", d))
  elseif k == 8 then return ("(%s %s %s)"):format(value(g, "b", d), g.one_of {"and", "or"},
    value(g, "b", d))
  else return ("(%s == nil)"):format(variable(g) or "nil") end
end

function expr.l(g, d)
  local items = {}
  for i = 1, g.pick(5) - 1 do
    local k = g.pick(6)
    if k == 1 then items[i] = ("[%d] = %s"):format(g.pick(4), value(g, "n", d))
    elseif k == 2 then items[i] = ("k%d = %s"):format(g.pick(3), value(g, "n", d))
    else items[i] = value(g, "n", d) end
  end
  if g.chance(5) then items[#items + 1] = ("three(%s)"):format(value(g, "n", d)) end
  return "{" .. table.concat(items, ", ") .. "}"
end

-- Any expression at all, of any types; for `try`. It calls nothing that assigns variables.
local function wild(g, d)
  local k = g.pick(d > 0 and 12 or 2)
  local function w() return wild(g, d - 1) end
  if k <= 2 then return variable(g, g.one_of(kinds)) or "nil"
  elseif k == 3 then return g.one_of {"nil", "1", "2.5", '"5"', '"z"', "true", "{}", "type",
    "nowhere"}
  elseif k <= 6 then return ("(%s %s %s)"):format(w(), g.one_of {"+", "-", "*", "/", "%", "//", "^",
    "..", "<", "<=", "==", "~=", "&", "|", "~", "<<", ">>"}, w())
  elseif k == 7 then return ("(%s%s)"):format(g.one_of {"-", "#", "~", "not "}, w())
  elseif k == 8 then return ("(%s).%s"):format(w(), g.one_of {"k1", "k2", "x"})
  elseif k == 9 then return ("(%s)[%s]"):format(w(), w())
  elseif k == 10 then return ("(%s)(%s)"):format(w(), w())
  elseif k == 11 then return ("(%s):%s(%s)"):format(w(), g.one_of {"upper", "rep", "k1"}, w())
  else return ("(%s %s %s)"):format(w(), g.one_of {"and", "or"}, w()) end
end

local function say(g)
  local parts = {}
  for i = 1, g.pick(3) do parts[i] = value(g, g.one_of(kinds), 2) end
  g.put(("say(%s)"):format(table.concat(parts, ", ")))
end

local function block(g, body)
  g.scopes[#g.scopes + 1] = {}
  g.indent = g.indent + 1
  g.depth = g.depth + 1
  if body then body() else generate_block(g) end
  g.depth = g.depth - 1
  g.indent = g.indent - 1
  g.scopes[#g.scopes] = nil
end

local statement = {}

function statement.declare(g)
  local n = g.chance(4) and g.pick(3) or 1
  local names, values, made = {}, {}, {}
  local constant = n == 1 and g.chance(8)
  for i = 1, n do
    local kind = g.one_of(kinds)
    local old = not constant and g.chance(6) and variable(g, kind)
    names[i] = old or g.fresh(kind)
    values[i] = value(g, kind)
    made[i] = {kind, names[i]}
  end
  g.put(("local %s%s = %s"):format(table.concat(names, ", "), constant and " <const>" or "",
    table.concat(values, ", ")))
  for _, m in ipairs(made) do declare(g, m[1], m[2], constant) end
end

function statement.assign(g)
  local n = g.chance(3) and g.pick(3) or 1
  local names, values = {}, {}
  for i = 1, n do
    local kind = g.one_of(kinds)
    names[i] = variable(g, kind, true)
    if not names[i] then return statement.declare(g) end
    values[i] = value(g, kind)
  end
  g.put(("%s = %s"):format(table.concat(names, ", "), table.concat(values, ", ")))
end

function statement.store(g)
  local l = variable(g, "l")
  if not l then return statement.declare(g) end
  local k = g.pick(5)
  if k == 1 then g.put(("%s.k%d = %s"):format(l, g.pick(3), value(g, "n")))
  elseif k == 2 then g.put(("table.insert(%s, %s)"):format(l, value(g, "n")))
  elseif k == 3 then g.put(("say(table.remove(%s))"):format(l))
  elseif k == 4 then g.put(("%s[#%s + 1] = %s"):format(l, l, value(g, "n")))
  else g.put(("put(%s, %s, %s)"):format(l, value(g, "n"), value(g, "n"))) end
end

statement["if"] = function(g)
  g.put(("if %s then"):format(value(g, g.chance(6) and g.one_of(kinds) or "b")))
  block(g)
  for _ = 1, g.pick(3) - 1 do
    g.put(("elseif %s then"):format(value(g, "b")))
    block(g)
  end
  if g.chance(2) then
    g.put "else"
    block(g)
  end
  g.put "end"
end

-- `first` is a line to begin the body with; names are {kind, name} of the loop's variables.
local function loop(g, head, names, first)
  g.put(head)
  local label, before = g.chance(3) and g.fresh "next" or nil, g.label
  g.label, g.breakable = label, g.breakable + 1
  block(g, function()
    if first then g.put(first) end
    for _, n in ipairs(names) do declare(g, n[1], n[2]) end
    if label then
      g.put "do"
      block(g)
      g.put "end"
      g.put(("::%s::"):format(label))
    else
      generate_block(g)
    end
  end)
  g.label, g.breakable = before, g.breakable - 1
  g.put "end"
end

statement["for"] = function(g)
  local i = g.fresh "i"
  local from, to = g.pick(5) - 2, g.pick(6) - 1
  local head = g.one_of {
    ("for %s = %d, %d do"):format(i, from, to),
    ("for %s = %d, %d, -1 do"):format(i, to, from),
    ("for %s = %d, %d, %s do"):format(i, from, to, g.one_of {"0.5", "2", "1.5"}),
    ("for %s = 1, math.min(4, #%s) do"):format(i, variable(g, "l") or '"abc"'),
  }
  loop(g, head, {{"n", i}})
end

function statement.each(g)
  local a, b = g.fresh "i", g.fresh "n"
  local l = value(g, "l", 1)
  local head = g.one_of {
    ("for %s, %s in ipairs(first_few(%s)) do"):format(a, b, l),
    ("for %s, %s in sorted(%s) do"):format(a, b, l),
    ("for %s, %s in count(%d) do"):format(a, b, g.pick(4)),
  }
  loop(g, head, head:find "sorted" and {{"s", a}, {"n", b}} or {{"n", a}, {"n", b}})
end

statement["while"] = function(g)
  local c = g.fresh "c" -- nobody else assigns it
  g.put(("local %s = %d"):format(c, g.pick(4)))
  if g.chance(2) then
    loop(g, ("while %s > 0 do"):format(c), {}, ("%s = %s - 1"):format(c, c))
    return
  end
  g.put "repeat"
  local inner = g.fresh "b"
  block(g, function()
    g.put(("%s = %s - 1"):format(c, c))
    g.put(("local %s = %s"):format(inner, value(g, "b")))
    say(g)
  end)
  g.put(("until %s <= 0 or %s"):format(c, inner))
end

function statement.leave(g)
  if g.label and g.chance(2) then
    g.put(("if %s then goto %s end"):format(value(g, "b"), g.label))
  elseif g.breakable > 0 then
    g.put(("if %s then break end"):format(value(g, "b")))
  else
    say(g)
  end
end

statement["do"] = function(g)
  g.put "do"
  block(g)
  g.put "end"
end

function statement.close(g)
  g.put "do"
  block(g, function()
    g.put(("local %s <close> = closing(%s)"):format(g.fresh "x", value(g, "s", 1)))
    generate_block(g)
  end)
  g.put "end"
end

-- A function of numbers; it sees and may assign the variables around.
local function function_body(g, params, vararg)
  local label, breakable = g.label, g.breakable
  g.label, g.breakable, g.functions = nil, 0, g.functions + 1
  block(g, function()
    for _, p in ipairs(params) do declare(g, "n", p) end
    if vararg then
      local l = g.fresh "l"
      g.put(("local %s = {...}"):format(l))
      declare(g, "l", l)
    end
    generate_block(g)
    g.put(("return %s"):format(value(g, "n") .. (g.chance(3) and ", " .. value(g, "n") or "")))
  end)
  g.label, g.breakable, g.functions = label, breakable, g.functions - 1
end

statement["function"] = function(g)
  if g.functions >= 2 then return say(g) end
  local f, params = g.fresh "f", {}
  for i = 1, g.pick(3) do params[i] = g.fresh "n" end
  local vararg = g.chance(3)
  local list = table.concat(params, ", ") .. (vararg and ", ..." or "")
  g.put(g.one_of {"local function " .. f .. "(" .. list .. ")", "local " .. f .. " = function("
    .. list .. ")"})
  function_body(g, params, vararg)
  g.put "end"
  declare(g, "f", f, true)
  statement.call(g)
end

function statement.call(g)
  local f = variable(g, "f")
  if not f then return say(g) end
  local args = {}
  for i = 1, g.pick(4) - 1 do args[i] = value(g, "n", 1) end
  local call = ("%s(%s)"):format(f, table.concat(args, ", "))
  -- A call may assign any variable: it stands alone on its side.
  local k = g.pick(5)
  if k == 1 then g.put(("say(%s)"):format(call))
  elseif k == 2 then g.put(("say((%s))"):format(call))
  elseif k == 3 then g.put(("say(try(%s, %s))"):format(f, value(g, "n", 1)))
  elseif k == 4 then
    local a, b = g.fresh "n", g.fresh "z"
    g.put(("local %s, %s = %s"):format(a, b, call))
    g.put(("say(%s, %s)"):format(a, b))
    declare(g, "n", a)
  else g.put(("say(select('#', %s), #{%s})"):format(call, call)) end
end

-- Closures made in a loop, called later.
function statement.closures(g)
  if g.functions >= 2 then return say(g) end
  local fs, i = g.fresh "fs", g.fresh "i"
  g.put(("local %s = {}"):format(fs))
  g.put(("for %s = 1, %d do"):format(i, g.pick(3)))
  block(g, function()
    declare(g, "n", i)
    local v = g.fresh "n"
    g.put(("local %s = %s"):format(v, value(g, "n")))
    declare(g, "n", v)
    g.put(("%s[#%s + 1] = function()"):format(fs, fs))
    g.functions = g.functions + 1
    block(g, function()
      g.put(("%s = %s + 1"):format(v, v))
      if variable(g, "n", true)
        then g.put(("%s = %s"):format(variable(g, "n", true), value(g, "n"))) end
      g.put(("return %s, %s"):format(v, i))
    end)
    g.functions = g.functions - 1
    g.put "end"
  end)
  g.put "end"
  g.put(("for _, f in ipairs(%s) do say(f()) say(f()) end"):format(fs))
end

function statement.object(g)
  g.put(("say(point(%s, %s) %s point(%s, %s))"):format(value(g, "n"), value(g, "n"),
    g.one_of {"+", "-", "*", "..", "==", "<", "<="}, value(g, "n"), value(g, "n")))
  local shown = "point(%s, 1):scale(%s).x, point(1, 2).missing, -point(3, 4), #point(1, 5)"
  g.put("say(" .. shown:format(value(g, "n"), value(g, "n")) .. ")")
end

function statement.try(g)
  g.put(("say(try(function() return %s end))"):format(wild(g, 4)))
end

local choices = {"declare", "declare", "declare", "assign", "assign", "assign", "store", "store",
  "if", "if", "for", "for", "each", "while", "leave",
  "leave", "do", "close", "function", "call", "closures", "object", "try", "try", "say"}
statement.say = say

function generate_block(g)
  for _ = 1, g.pick(4) do
    if g.budget <= 0 or g.depth > 6 then break end
    g.budget = g.budget - 1
    statement[g.one_of(choices)](g)
  end
  say(g)
end

local prelude = [[
local T = require "mod.show"
local budget = 3000
local function say(...)
  budget = budget - 1
  if budget < 0 then error("enough", 0) end
  print(T.list(...))
end
-- Which operand an error names follows from stock Lua's use of registers.
local function try(f, ...)
  local r = T.try(f, ...):gsub(" %(%a+ '[^']*'%)", "")
  return #r < 300 and r or #r
end
local function at(l, i) local v = l[i] return type(v) == "number" and v or -1 end
local function put(l, i, v) if i == i then l[i] = v end end
local function cut(s) return s:sub(1, 20) end -- nothing grows without end
local function first(x) return x end
local function three(x) return x, x, x end
local function count(n) return function(_, i) if i < n then return i + 1, i * i end end, nil, 0 end
local function first_few(l) return {table.unpack(l, 1, 3)} end
local function sorted(l)
  local keys = {}
  for k in pairs(l) do keys[#keys + 1] = tostring(k) end
  table.sort(keys)
  local i = 0
  return function() i = i + 1 if keys[i] then return keys[i], i end end
end
local function closing(name) return setmetatable({},
  {__close = function(_, e) say("close", name, e ~= nil) end}) end
local Point = {}
Point.__index = Point
local function point(x, y) return setmetatable({x = x, y = y}, Point) end
function Point:scale(k) return point(self.x * k, self.y * k) end
Point.__add = function(a, b) return point(a.x + b.x, a.y + b.y) end
Point.__sub = function(a, b) return point(a.x - b.x, a.y - b.y) end
Point.__mul = function(a, b) return a.x * b.x + a.y * b.y end
Point.__concat = function(a, b) return T.show(a.x) .. T.show(b.y) end
Point.__eq = function(a, b) return a.x == b.x end
Point.__lt = function(a, b) return a.x < b.x end
Point.__le = function(a, b) return a.x <= b.x end
Point.__unm = function(a) return point(-a.x, -a.y) end
Point.__len = function(a) return a.y end
]]

return function(seed)
  local g = new(seed)
  for _ = 1, 6 do generate_block(g) end
  return prelude .. "local function main()\n" .. table.concat(g.out,
    "\n") .. "\nend\nprint(try(main))\n"
end
