-- A lexer, parser, printer and evaluator of a small Lua, written in Lua: a program of the kind that
-- people write, with closures, methods, string patterns, recursion and errors that travel far.
local sample = [==[
local function fact(n) if n <= 1 then return 1 else return n * fact(n - 1) end end
local t, i = {10, 20, x = 3, ["y z"] = "s"}, 0
while i < 3 do i = i + 1 if i == 2 then t[i] = t[i] .. "!" end end
for k = 1, 3 do t.x = t.x + k * 2 ^ k - -k // 2 end
repeat local j = i i = i - 1 until j == 0 or not (i > 0 and true)
local f = function(a, ...) return a, select("#", ...), ... end
print(fact(10), t[1], t[2], t.x, t["y z"], i)
print(f(1, 2, nil), #t, #"abc" + 1, -2 ^ 2, not nil == true, 1 .. 2 .. "c", 7 % 3 * 2 + 1 << 1)
do local s = "" for _, v in ipairs({"a", "b"}) do s = v .. s end print(s) end
return fact(5), t
]==]

---- lexer

local keywords = {}
for w in ([[and break do else elseif end false for function if in local nil not or repeat
  return then true until while]]):gmatch("%a+") do
  keywords[w] = true
end

local function lexer(text)
  local pos, line = 1, 1
  local L = {}
  local function fail(message) error(("%d: %s"):format(line, message), 0) end
  local function take(pattern)
    local s, e, capture = text:find("^" .. pattern, pos)
    if not s then return nil end
    for _ in text:sub(s, e):gmatch("\n") do line = line + 1 end
    pos = e + 1
    return capture or text:sub(s, e)
  end
  local function read()
    take("%s+")
    while take("%-%-[^\n]*") do take("%s+") end
    if pos > #text then return "eof" end
    local w = take("[%a_][%w_]*")
    if w then return keywords[w] and w or "name", w end
    w = take("0[xX]%x+") or take("%d+%.?%d*[eE]?[+-]?%d*")
    if w then return "number", tonumber(w) or fail("bad number " .. w) end
    w = take("(%b\"\")") or take("(%b'')")
    if w then return "string", (w:sub(2, -2):gsub("\\n", "\n")) end
    for _, op in ipairs({"%.%.%.", "%.%.", "==", "~=", "<=", ">=", "//", "<<", ">>", "::"}) do
      w = take(op)
      if w then return w end
    end
    return take("[%+%-%*/%%%^#&~|<>=%(%){}%[%];:,%.]") or
      fail("strange character " .. text:sub(pos, pos))
  end
  function L:next() self.kind, self.value = read() return self end
  function L:accept(kind)
    if self.kind == kind then local v = self.value or kind self:next() return v end
  end
  function L:expect(kind)
    local v = self:accept(kind)
    if v == nil then fail(kind .. " expected near " .. tostring(self.value or self.kind)) end
    return v
  end
  L.fail = fail
  return L:next()
end

---- parser

local priority = {["or"] = {1, 1}, ["and"] = {2, 2}, [".."] = {9, 8}, ["^"] = {14, 13}}
for level, names in pairs({[3] = "< > <= >= ~= ==", [4] = "|", [5] = "~", [6] = "&", [7] = "<< >>",
  [10] = "+ -", [11] = "* / // %"}) do
  for op in names:gmatch("%S+") do priority[op] = {level, level} end
end
local unary = {["not"] = true, ["-"] = true, ["#"] = true, ["~"] = true}

local expr, block

local function list(L, item, close)
  local out = {}
  if close and L.kind == close then return out end
  repeat out[#out + 1] = item(L) until not L:accept(",")
  return out
end

local function body(L)
  L:expect("(")
  local params, vararg = {}, false
  while L.kind ~= ")" do
    if L:accept("...") then vararg = true break end
    params[#params + 1] = L:expect("name")
    if not L:accept(",") then break end
  end
  L:expect(")")
  local b = block(L)
  L:expect("end")
  return {"function", params, b, vararg}
end

local function table_constructor(L)
  local items = {}
  L:expect("{")
  while L.kind ~= "}" do
    if L:accept("[") then
      local k = expr(L)
      L:expect("]") L:expect("=")
      items[#items + 1] = {k, expr(L)}
    else
      local e = expr(L)
      if e[1] == "name" and L:accept("=") then
        items[#items + 1] = {{"constant", e[2]}, expr(L)}
      else
        items[#items + 1] = {false, e}
      end
    end
    if not (L:accept(",") or L:accept(";")) then break end
  end
  L:expect("}")
  return {"table", items}
end

local simple = {
  number = function(L) return {"constant", L:expect("number")} end,
  string = function(L) return {"constant", L:expect("string")} end,
  ["nil"] = function(L) L:next() return {"nil"} end,
  ["true"] = function(L) L:next() return {"constant", true} end,
  ["false"] = function(L) L:next() return {"constant", false} end,
  ["..."] = function(L) L:next() return {"..."} end,
  ["function"] = function(L) L:next() return body(L) end,
  ["{"] = table_constructor,
}

local function suffixed(L)
  local e
  if L:accept("(") then
    e = {"paren", expr(L)}
    L:expect(")")
  else
    e = {"name", L:expect("name")}
  end
  while true do
    if L:accept(".") then e = {"index", e, {"constant", L:expect("name")}}
    elseif L:accept("[") then
      e = {"index", e, expr(L)}
      L:expect("]")
    elseif L.kind == "(" then
      L:next()
      e = {"call", e, list(L, expr, ")")}
      L:expect(")")
    elseif L.kind == "string" or L.kind == "{" then e = {"call", e, {simple[L.kind](L)}}
    else return e end
  end
end

function expr(L, limit)
  limit = limit or 0
  local left
  if unary[L.kind] then
    local op = L.kind
    L:next()
    left = {"unary", op, expr(L, 12)}
  else
    left = (simple[L.kind] or suffixed)(L)
  end
  local p = priority[L.kind]
  while p and p[1] > limit do
    local op = L.kind
    L:next()
    left = {"binary", op, left, expr(L, p[2])}
    p = priority[L.kind]
  end
  return left
end

local statement = {
  ["if"] = function(L)
    local arms = {}
    repeat
      L:next()
      local c = expr(L)
      L:expect("then")
      arms[#arms + 1] = {c, block(L)}
    until L.kind ~= "elseif"
    local other = L:accept("else") and block(L)
    L:expect("end")
    return {"if", arms, other}
  end,
  ["while"] = function(L)
    L:next()
    local c = expr(L)
    L:expect("do")
    local b = block(L)
    L:expect("end")
    return {"while", c, b}
  end,
  ["do"] = function(L) L:next() local b = block(L) L:expect("end") return {"do", b} end,
  ["repeat"] = function(L)
    L:next()
    local b = block(L)
    L:expect("until")
    return {"repeat", b, expr(L)}
  end,
  ["for"] = function(L)
    L:next()
    local names = list(L, function() return L:expect("name") end)
    local numeric = #names == 1 and L:accept("=")
    if not numeric then L:expect("in") end
    local values = list(L, expr)
    L:expect("do")
    local b = block(L)
    L:expect("end")
    return {numeric and "fornum" or "forin", names, values, b}
  end,
  ["local"] = function(L)
    L:next()
    if L:accept("function") then return {"localfunction", L:expect("name"), body(L)} end
    local names = list(L, function() return L:expect("name") end)
    return {"local", names, L:accept("=") and list(L, expr) or {}}
  end,
  ["return"] = function(L)
    L:next()
    return {"return", (L.kind == "end" or L.kind == "eof") and {} or list(L, expr)}
  end,
  ["break"] = function(L) L:next() return {"break"} end,
}

local stops = {["end"] = true, eof = true, ["else"] = true, ["elseif"] = true, ["until"] = true}
function block(L)
  local out = {}
  while not stops[L.kind] do
    if not L:accept(";") then
      local parse = statement[L.kind]
      if parse then out[#out + 1] = parse(L)
      else
        local e = suffixed(L)
        if e[1] == "call" and L.kind ~= "=" and L.kind ~= "," then out[#out + 1] = {"callstat", e}
        else
          local targets = {e}
          while L:accept(",") do targets[#targets + 1] = suffixed(L) end
          L:expect("=")
          out[#out + 1] = {"assign", targets, list(L, expr)}
        end
      end
    end
  end
  return out
end

local function parse(text)
  local L = lexer(text)
  local b = block(L)
  L:expect("eof")
  return b
end

---- printer: every operator in parentheses

local show
local function commas(es)
  local out = {}
  for i, e in ipairs(es) do out[i] = show(e) end
  return table.concat(out, ", ")
end
local printers = {
  constant = function(e)
    return type(e[2]) == "string" and ("%q"):format(e[2]) or tostring(e[2])
  end,
  ["nil"] = function() return "nil" end,
  ["..."] = function() return "..." end,
  name = function(e) return e[2] end,
  paren = function(e) return "(" .. show(e[2]) .. ")" end,
  index = function(e) return show(e[2]) .. "[" .. show(e[3]) .. "]" end,
  call = function(e) return show(e[2]) .. "(" .. commas(e[3]) .. ")" end,
  unary = function(e) return "(" .. e[2] .. " " .. show(e[3]) .. ")" end,
  binary = function(e) return "(" .. show(e[3]) .. " " .. e[2] .. " " .. show(e[4]) .. ")" end,
  table = function(e)
    local out = {}
    for i, item in ipairs(e[2]) do
      out[i] = (item[1] and "[" .. show(item[1]) .. "] = " or "") .. show(item[2])
    end
    return "{" .. table.concat(out, ", ") .. "}"
  end,
  ["function"] = function(e)
    return "function/" .. #e[2] .. (e[4] and "+" or "") .. "/" .. #e[3]
  end,
}
function show(e) return printers[e[1]](e) end

---- evaluator: closures made from the tree

local compile_block
local Break, Return = {}, {}
local function scope(up)
  return setmetatable({}, {__index = up, __newindex = function(t, k, v)
    if rawget(t, "$" .. k) or not up then rawset(t, k, v) else up[k] = v end
  end})
end
local function declare(env, name, v) rawset(env, "$" .. name, true) rawset(env, name, v) end

local ops = {}
for op in ("+ - * / // % ^ .. == ~= < <= > >= << >> & | ~"):gmatch("%S+") do ops[op] = true end
local arith = {
  ["+"] = function(a, b) return a + b end, ["-"] = function(a, b) return a - b end,
  ["*"] = function(a, b) return a * b end, ["/"] = function(a, b) return a / b end,
  ["//"] = function(a, b) return a // b end, ["%"] = function(a, b) return a % b end,
  ["^"] = function(a, b) return a ^ b end, [".."] = function(a, b) return a .. b end,
  ["=="] = function(a, b) return a == b end, ["~="] = function(a, b) return a ~= b end,
  ["<"] = function(a, b) return a < b end, ["<="] = function(a, b) return a <= b end,
  [">"] = function(a, b) return a > b end, [">="] = function(a, b) return a >= b end,
  ["<<"] = function(a, b) return a << b end, [">>"] = function(a, b) return a >> b end,
  ["&"] = function(a, b) return a & b end, ["|"] = function(a, b) return a | b end,
  ["~"] = function(a, b) return a ~ b end}
for op in pairs(ops) do assert(arith[op], op) end

local run
local function all(env, es)
  local out, n = {}, 0
  for i, e in ipairs(es) do
    if i == #es then
      local r = table.pack(run(env, e))
      for k = 1, r.n do out[n + k] = r[k] end
      n = n + r.n
    else
      n = n + 1
      out[n] = (run(env, e))
    end
  end
  out.n = n
  return out
end

local evals = {
  constant = function(_, e) return e[2] end,
  ["nil"] = function() return nil end,
  name = function(env, e) return env[e[2]] end,
  paren = function(env, e) return (run(env, e[2])) end,
  index = function(env, e) return (run(env, e[2]))[(run(env, e[3]))] end,
  ["..."] = function(env) local v = env["..."] return table.unpack(v, 1, v.n) end,
  call = function(env, e)
    local f = run(env, e[2])
    if type(f) ~= "function" then error("cannot call " .. show(e[2]), 0) end
    local args = all(env, e[3])
    return f(table.unpack(args, 1, args.n))
  end,
  unary = function(env, e)
    local v = run(env, e[3])
    if e[2] == "not" then return not v
    elseif e[2] == "-" then return -v
    elseif e[2] == "#" then return #v end
    return ~v
  end,
  binary = function(env, e)
    local a = run(env, e[3])
    if e[2] == "and" then return a and (run(env, e[4])) end
    if e[2] == "or" then return a or (run(env, e[4])) end
    return arith[e[2]](a, (run(env, e[4])))
  end,
  table = function(env, e)
    local t, n = {}, 0
    for i, item in ipairs(e[2]) do
      if item[1] then t[run(env, item[1])] = (run(env, item[2]))
      elseif i == #e[2] then
        local r = table.pack(run(env, item[2]))
        for k = 1, r.n do t[n + k] = r[k] end
      else
        n = n + 1
        t[n] = (run(env, item[2]))
      end
    end
    return t
  end,
  ["function"] = function(env, e)
    return function(...)
      local inner = scope(env)
      local args = table.pack(...)
      for i, p in ipairs(e[2]) do declare(inner, p, args[i]) end
      declare(inner, "...", table.pack(select(#e[2] + 1, ...)))
      local kind, r = compile_block(inner, e[3])
      if kind == Return then return table.unpack(r, 1, r.n) end
    end
  end,
}
function run(env, e) return evals[e[1]](env, e) end

local execs
local function exec_in(env, b) return compile_block(scope(env), b) end
execs = {
  ["local"] = function(env, s)
    local r = all(env, s[3])
    for i, n in ipairs(s[2]) do declare(env, n, r[i]) end
  end,
  localfunction = function(env, s)
    declare(env, s[2], nil)
    rawset(env, s[2], run(env, s[3]))
  end,
  assign = function(env, s)
    local r = all(env, s[3])
    for i = #s[2], 1, -1 do
      local target = s[2][i]
      if target[1] == "name" then env[target[2]] = r[i]
      else (run(env, target[2]))[(run(env, target[3]))] = r[i] end
    end
  end,
  callstat = function(env, s) run(env, s[2]) end,
  ["do"] = function(env, s) return exec_in(env, s[2]) end,
  ["if"] = function(env, s)
    for _, arm in ipairs(s[2]) do if run(env, arm[1]) then return exec_in(env, arm[2]) end end
    if s[3] then return exec_in(env, s[3]) end
  end,
  ["while"] = function(env, s)
    while run(env, s[2]) do
      local kind, r = exec_in(env, s[3])
      if kind == Break then break elseif kind then return kind, r end
    end
  end,
  ["repeat"] = function(env, s)
    repeat
      local inner = scope(env)
      local kind, r = compile_block(inner, s[2])
      if kind == Break then break elseif kind then return kind, r end
    until run(inner, s[3])
  end,
  fornum = function(env, s)
    local from, to, step = table.unpack(all(env, s[3]), 1, 3)
    for v = from, to, step or 1 do
      local inner = scope(env)
      declare(inner, s[2][1], v)
      local kind, r = compile_block(inner, s[4])
      if kind == Break then break elseif kind then return kind, r end
    end
  end,
  forin = function(env, s)
    local it, state, control = table.unpack(all(env, s[3]), 1, 3)
    while true do
      local r = table.pack(it(state, control))
      if r[1] == nil then return end
      control = r[1]
      local inner = scope(env)
      for i, n in ipairs(s[2]) do declare(inner, n, r[i]) end
      local kind, result = compile_block(inner, s[4])
      if kind == Break then break elseif kind then return kind, result end
    end
  end,
  ["return"] = function(env, s) return Return, all(env, s[2]) end,
  ["break"] = function() return Break end,
}
function compile_block(env, b)
  for _, s in ipairs(b) do
    local kind, r = execs[s[1]](env, s)
    if kind then return kind, r end
  end
end

---- use

local function interpret(text)
  local globals = scope(nil)
  for _, n in ipairs({"print", "select", "ipairs"}) do globals[n] = _G[n] end
  local kind, r = compile_block(globals, parse(text))
  if kind == Return then return table.unpack(r, 1, r.n) end
end

local value, t = interpret(sample)
print(value, #t, t["y z"])
for _, text in ipairs({"1 + 2 * 3 ^ 4 ^ 5 .. x", "not a == b and -c ^ 2 < #d or e",
  "f{1, a = 2, [3] = g'x'}.y[z](...)(nil)", "function(a, b, ...) return a end",
  "1 << 2 + 3 & 4 | 5 ~ 6 // 7 % 8"}) do
  print(show(expr(lexer(text))))
end
for _, text in ipairs({"x = ", "local 1", "f(", "if a then", "x = @", "return )", "x = 'a",
  "while true do break", "f().x", "nofunction()", "local t = nil t.x = 1", "return 1 + {}"}) do
  local ok, e = pcall(interpret, text)
  print(ok, (tostring(e):gsub("^[^:]*%.lua:%d+:[%d:]* ?", "")))
end
local count = 0
for _, s in ipairs(parse(sample)) do count = count + #s end
print(count, interpret([[local n = 0
  for i = 1, 200 do for j = 1, 5 do if i % j == 0 then n = n + j end end end
  return n]]))
