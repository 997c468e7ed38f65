-- Programs on text: JSON, a calculator, a small Lisp, templates, base 64, word counts, run lengths.
local T = require "mod.show"
local show, try = T.show, T.try

-- JSON
local json = {}
function json.encode(v)
  local t = type(v)
  if t == "nil" then return "null"
  elseif t == "boolean" then return tostring(v)
  elseif t == "number" then return math.type(v) == "integer" and ("%d"):format(v)
    or ("%.14g"):format(v)
  elseif t == "string" then
    return '"' .. v:gsub('[%c"\\]', function(c)
      return ({['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\t"] = "\\t"})[c]
        or ("\\u%04x"):format(c:byte())
    end) .. '"'
  elseif t == "table" then
    local out = {}
    if #v > 0 then
      for i, x in ipairs(v) do out[i] = json.encode(x) end
      return "[" .. table.concat(out, ",") .. "]"
    end
    local keys = {}
    for k in pairs(v) do keys[#keys + 1] = k end
    table.sort(keys)
    for i, k in ipairs(keys) do out[i] = json.encode(k) .. ":" .. json.encode(v[k]) end
    return "{" .. table.concat(out, ",") .. "}"
  end
  error("cannot encode a " .. t, 0)
end
function json.decode(s)
  local pos = 1
  local value
  local function fail(what) error(("%s at %d"):format(what, pos), 0) end
  local function skip() pos = s:match("^%s*()", pos) end
  local function expect(c) skip() if s:sub(pos, pos) ~= c then fail("'" .. c .. "' expected")
    end pos = pos + 1 end
  local function str()
    expect '"'
    local out = {}
    while true do
      local plain, after = s:match('^([^"\\]*)()', pos)
      out[#out + 1] = plain
      pos = after
      local c = s:sub(pos, pos)
      if c == '"' then pos = pos + 1 return table.concat(out) end
      if c == "" then fail "unfinished string" end
      local e = s:sub(pos + 1, pos + 1)
      if e == "u" then
        out[#out + 1] = utf8.char(tonumber(s:sub(pos + 2, pos + 5), 16))
        pos = pos + 6
      else
        out[#out + 1] = ({n = "\n", t = "\t", r = "\r", b = "\b", f = "\f"})[e] or e
        pos = pos + 2
      end
    end
  end
  local function list()
    local out = {}
    expect "["
    skip()
    if s:sub(pos, pos) == "]" then pos = pos + 1 return out end
    repeat
      out[#out + 1] = value()
      skip()
      local c = s:sub(pos, pos)
      pos = pos + 1
      if c ~= "," and c ~= "]" then pos = pos - 1 fail "',' expected" end
    until c == "]"
    return out
  end
  local function object()
    local out = {}
    expect "{"
    skip()
    if s:sub(pos, pos) == "}" then pos = pos + 1 return out end
    while true do
      skip()
      local k = str()
      expect ":"
      out[k] = value()
      skip()
      local c = s:sub(pos, pos)
      pos = pos + 1
      if c == "}" then return out elseif c ~= "," then pos = pos - 1 fail "',' expected" end
    end
  end
  function value()
    skip()
    local c = s:sub(pos, pos)
    if c == "{" then return object() elseif c == "[" then return list() elseif c == '"' then
      return str() end
    for word, v in pairs {["true"] = true, ["false"] = false} do
      if s:find("^" .. word, pos) then pos = pos + #word return v end
    end
    if s:find("^null", pos) then pos = pos + 4 return nil end
    local n, after = s:match("^(-?%d+%.?%d*[eE]?[+-]?%d*)()", pos)
    if not n then fail "value expected" end
    pos = after
    return tonumber(n)
  end
  local v = value()
  skip()
  if pos <= #s then fail "trailing text" end
  return v
end
local doc = {name = "kiln", list = {1, 2.5, -3, 1e10}, nested = {deep = {deeper = {true, false}}},
  text = 'quote " slash \\ tab \t \1', empty = ""}
local encoded = json.encode(doc)
print(encoded)
print(json.encode(json.decode(encoded)) == encoded,
  show(json.decode '{"a" : [1, 2, {"b": null}], "c\\u0041": "x\\ny"}'))
for _, bad in ipairs {"", "[1,", "{", '{"a" 1}', "[1 2]", '"abc', "nul", "1 2", "{1:2}"} do
  print(show(bad), try(json.decode, bad)) end
print(try(json.encode, {f = print}))

-- A calculator: precedence climbing.
local function calculate(text)
  local tokens = {}
  for space, number, other in text:gmatch("(%s*)(%d*%.?%d*)(.?)") do
    if number ~= "" then tokens[#tokens + 1] = tonumber(number) end
    if other:find "%S" then tokens[#tokens + 1] = other end
  end
  local at = 1
  local levels = {["+"] = 1, ["-"] = 1, ["*"] = 2, ["/"] = 2, ["%"] = 2, ["^"] = 4}
  local apply = {["+"] = function(a, b) return a + b end, ["-"] = function(a, b) return a - b end,
    ["*"] = function(a, b) return a * b end,
    ["/"] = function(a, b) return a / b end, ["%"] = function(a, b) return a % b end, ["^"] =
      function(a, b) return a ^ b end}
  local expression
  local function primary()
    local t = tokens[at]
    at = at + 1
    if t == "(" then
      local v = expression(0)
      if tokens[at] ~= ")" then error("')' expected", 0) end
      at = at + 1
      return v
    elseif t == "-" then return -expression(3)
    elseif type(t) == "number" then return t end
    error("unexpected " .. tostring(t), 0)
  end
  function expression(limit)
    local left = primary()
    while levels[tokens[at]] and levels[tokens[at]] > limit do
      local op = tokens[at]
      at = at + 1
      left = apply[op](left, expression(op == "^" and 3 or levels[op]))
    end
    return left
  end
  local v = expression(0)
  if tokens[at] then error("unexpected " .. tostring(tokens[at]), 0) end
  return v
end
for _, e in ipairs {"1+2*3", "(1+2)*3", "2^3^2", "-2^2", "10/4", "7 % 4 - 1", "1 + ", "(1",
  "2 * (3 + 4) * 5", "1 2", "1.5*4", "--3"} do print(e, try(calculate, e)) end

-- A small Lisp.
local function read(text)
  local stack, top = {}, {}
  for space, token in text:gmatch("(%s*)([()']?[^%s()']*)") do
    while token ~= "" do
      local c = token:sub(1, 1)
      if c == "(" then
        stack[#stack + 1] = top
        top = {}
        token = token:sub(2)
      elseif c == ")" then
        local done = top
        top = table.remove(stack)
        top[#top + 1] = done
        token = token:sub(2)
      else
        top[#top + 1] = tonumber(token) or token
        token = ""
      end
    end
  end
  return top
end
local function eval(x, env)
  while true do
    if type(x) == "string" then return env[x] elseif type(x) ~= "table" then return x end
    local head = x[1]
    if head == "if" then x = eval(x[2], env) and x[3] or x[4]
    elseif head == "define" then env[x[2]] = eval(x[3], env) return nil
    elseif head == "quote" then return x[2]
    elseif head == "lambda" then
      local params, body = x[2], x[3]
      return function(...)
        local inner = setmetatable({}, {__index = env})
        for i, p in ipairs(params) do inner[p] = (select(i, ...)) end
        return eval(body, inner)
      end
    elseif head == "let" then
      local inner = setmetatable({}, {__index = env})
      for _, b in ipairs(x[2]) do inner[b[1]] = eval(b[2], inner) end
      x, env = x[3], inner
    else
      local values = {}
      for i = 1, #x do values[i] = eval(x[i], env) end
      return values[1](table.unpack(values, 2, #x))
    end
  end
end
local env = {["+"] = function(a, b) return a + b end, ["-"] = function(a, b) return a - b end,
  ["*"] = function(a, b) return a * b end,
  ["<"] = function(a, b) return a < b end, ["="] = function(a, b) return a == b end, list =
    function(...) return {...} end,
  map = function(f, l) local out = {} for i, v in ipairs(l) do out[i] = f(v) end return out end,
  fold = function(f, a, l) for _, v in ipairs(l) do a = f(a, v) end return a end}
for _, form in ipairs(read [[
  (define fact (lambda (n) (if (< n 2) 1 (* n (fact (- n 1))))))
  (fact 15)
  (define compose (lambda (f g) (lambda (x) (f (g x)))))
  ((compose (lambda (x) (* x 2)) (lambda (x) (+ x 1))) 20)
  (let ((a 3) (b (* a a))) (+ a b))
  (map (lambda (x) (* x x)) (list 1 2 3 4))
  (fold + 0 (map fact (list 1 2 3 4 5)))
  (define count (lambda (n acc) (if (= n 0) acc (count (- n 1) (+ acc 2)))))
  (count 40 0)
]]) do print(show(eval(form, env))) end

-- Templates and other uses of gsub.
local function fill(template, values)
  return (template:gsub("%${(%w+)|?([^}]*)}", function(k, default) return values[k] or default ~= ""
  and default or nil end)) end
print(fill("${a} and ${b|none} and ${c}", {a = 1}))
print((("CamelCaseText"):gsub("%u", function(c) return "_" .. c:lower() end)),
  (("snake_case_text"):gsub("_(%l)", string.upper)))
print((("  trim me  "):match "^%s*(.-)%s*$") .. "|", ("a,b,,c"):gsub(",", ";"),
  ("x=1;y=2"):gsub("(%w)=(%w)", "%2=%1"))
print((("hello"):gsub("", "-")), ("abc"):gsub(".", {a = "1", b = false}),
  (("%d"):gsub("%%d", "%%%%s")))

local alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
local function base64(s)
  local out = {}
  for i = 1, #s, 3 do
    local a, b, c = s:byte(i, i + 2)
    local n = a << 16 | (b or 0) << 8 | (c or 0)
    for k = 3, 0, -1 do out[#out + 1] = alphabet:sub((n >> 6 * k & 63) + 1, (n >> 6 * k & 63) + 1)
      end
    if not c then out[#out] = "=" end
    if not b then out[#out - 1] = "=" end
  end
  return table.concat(out)
end
local function unbase64(s)
  local out = {}
  for a, b, c, d in s:gmatch "(.)(.)(.)(.)" do
    local n = 0
    for _, x in ipairs {a, b, c, d}
      do n = n << 6 | (x == "=" and 0 or alphabet:find(x, 1, true) - 1) end
    out[#out + 1] = string.char(n >> 16, n >> 8 & 255, n & 255):sub(1,
      d ~= "=" and 3 or c ~= "=" and 2 or 1)
  end
  return table.concat(out)
end
for _, s in ipairs {"", "M", "Ma", "Man", "any carnal pleas", "\0\255\128"} do
  print(base64(s), unbase64(base64(s)) == s) end

local text = "the cat and the dog and the bird"
local counts = setmetatable({}, {__index = function() return 0 end})
for w in text:gmatch "%a+" do counts[w] = counts[w] + 1 end
local words = {}
for w in pairs(counts) do words[#words + 1] = w end
table.sort(words, function(a, b) return counts[a] > counts[b] or counts[a] == counts[b] and a < b
  end)
for i, w in ipairs(words) do words[i] = w .. "=" .. counts[w] end
print(table.concat(words, " "))
local function squeeze(s)
  local out, i = {}, 1
  while i <= #s do
    local run = #s:match("^" .. s:sub(i, i) .. "+", i)
    out[#out + 1] = s:sub(i, i) .. (run > 1 and run or "")
    i = i + run
  end
  return table.concat(out)
end
print(squeeze "aaabccdddd", squeeze "", squeeze "abc")
local function rot13(s) return (s:gsub("%a", function(c) local b = c:lower() == c and 97 or 65
  return string.char((c:byte() - b + 13) % 26 + b) end)) end
print(rot13 "Hello, World", rot13(rot13 "Hello, World"))
local function wrap(s, width)
  local lines, line = {}, ""
  for w in s:gmatch "%S+" do
    if #line > 0 and #line + 1 + #w > width then lines[#lines + 1], line = line, w
    else line = #line > 0 and line .. " " .. w or w end
  end
  lines[#lines + 1] = line
  return lines
end
for _, l in ipairs(wrap(("lorem ipsum dolor sit amet "):rep(4), 20)) do print(("%-20s|"):format(l))
  end
local function edit(a, b)
  local row = {}
  for j = 0, #b do row[j] = j end
  for i = 1, #a do
    local diag, left = row[0], i
    row[0] = i
    for j = 1, #b do
      local cost = math.min(row[j] + 1, left + 1, diag + (a:byte(i) == b:byte(j) and 0 or 1))
      diag, row[j], left = row[j], cost, cost
    end
  end
  return row[#b]
end
print(edit("kitten", "sitting"), edit("", "abc"), edit("flaw", "lawn"))
-- An interpreter of another language.
local function brain(code)
  local jump, stack = {}, {}
  for i = 1, #code do
    local c = code:sub(i, i)
    if c == "[" then stack[#stack + 1] = i elseif c == "]" then local j = table.remove(stack)
      jump[i], jump[j] = j, i end
  end
  local tape, p, i, out = setmetatable({}, {__index = function() return 0 end}), 1, 1, {}
  ::step::
  if i > #code then return table.concat(out) end
  local c = code:sub(i, i)
  if c == ">" then p = p + 1
  elseif c == "<" then p = p - 1
  elseif c == "+" then tape[p] = (tape[p] + 1) % 256
  elseif c == "-" then tape[p] = (tape[p] - 1) % 256
  elseif c == "." then out[#out + 1] = string.char(tape[p])
  elseif c == "[" and tape[p] == 0 or c == "]" and tape[p] ~= 0 then i = jump[i] end
  i = i + 1
  goto step
end
print(brain("++++++++[>++++[>++>+++>+++>+<<<<-]>+>+>->>+[<]<-]>>.>---.+++++++..+++." ..
  ">>.<-.<.+++.------.--------.>>+."))
