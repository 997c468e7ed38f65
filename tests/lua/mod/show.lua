-- What the programs beside this folder share: values as text, errors without their place, and a
-- generator of pseudo-random numbers. A program prints; what stock Lua prints for it is right.
local M = {}

-- A value in full: kind of number, quoted strings, tables by sorted keys.
function M.show(v, depth)
  depth = depth or 0
  local t = type(v)
  if t == "number" then
    if v ~= v then return "nan" end
    return math.type(v) == "integer" and ("%d"):format(v) or ("%.17g"):format(v) .. "f"
  elseif t == "string" then
    return (("%q"):format(v):gsub("\\\n", "\\n"))
  elseif t == "table" and depth < 4 then
    local keys = {}
    for k in pairs(v) do keys[#keys + 1] = k end
    table.sort(keys, function(a, b)
      if type(a) ~= type(b) then return type(a) < type(b) end
      if type(a) == "boolean" then return not a and b end
      return a < b
    end)
    local out = {}
    for i, k in ipairs(keys) do out[i] = M.show(k, depth + 1) .. "=" .. M.show(v[k], depth + 1) end
    return "{" .. table.concat(out, ",") .. "}"
  elseif t == "nil" or t == "boolean" then
    return tostring(v)
  end
  return t
end

function M.list(...)
  local out = {}
  for i = 1, select("#", ...) do out[i] = M.show((select(i, ...))) end
  return table.concat(out, " ")
end

-- A message without the place in front of it. `exact` is false where the Lua at hand words its
-- messages otherwise.
function M.message(e)
  if type(e) ~= "string" then return M.show(e) end
  if exact == false then return "some error" end
  return (e:gsub("^[%w_./-]+:%d+:[%d:]* ?", ""))
end

local function results(ok, ...)
  if ok then return M.list(...) end
  return "error: " .. M.message((...))
end

-- What f(...) gives, or its error.
function M.try(f, ...)
  return results(pcall(f, ...))
end

function M.random(seed)
  local x = seed
  return function(n) -- 1 ... n
    x = (x * 1103515245 + 12345) & 0x7fffffff
    return (x >> 8) % n + 1
  end
end

return M
