-- Casts between all pairs of dtypes that are lowered: every value of types of 16 bits and fewer;
-- from f32 and f64 every middle between two values of the narrow target, with its neighbours on
-- both sides. The result goes to f64, where the oracle's is exact: what rounds otherwise shows.
-- kiln test tests/gpu/sweep_casts.lua --root . --on gpu

local M <const> = 2048 -- rows of 128, in order: errors are judged by blocks of 128 x 128

-- Bits of exponent and mantissa; whether the top exponent is for infinities and NaN.
local formats = {
  [f16] = {5, 10, true}, [bf16] = {8, 7, true}, [e5m2] = {5, 2, true}, [e4m3] = {4, 3, false},
  [f32] = {8, 23, true},
}
local ranges = {
  [s8] = {-128, 127}, [u8] = {0, 255}, [s32] = {-2 ^ 31, 2 ^ 31 - 1}, [s64] = {-2 ^ 53, 2 ^ 53},
  [bool] = {0, 1},
}

-- Value m of the positive finite ones, its exponent, and how many there are.
local function value(f, m)
  local bias, man = 2 ^ (f[1] - 1) - 1, 2 ^ f[2]
  local e, x = m // man, m % man
  if e == 0 then return x / man * 2 ^ (1 - bias), 1 - bias end
  return (1 + x / man) * 2 ^ (e - bias), e - bias
end
local function count(f)
  local all = 1 << (f[1] + f[2])
  return f[3] and all - (1 << f[2]) or all - 1
end

-- All values of S, or what tells roundings to T apart.
local function values(S, T)
  local out, n = {}, 0
  local function add(x)
    n = n + 1
    out[n] = x
  end
  local function both(x)
    add(x)
    add(-x)
  end
  local r = ranges[S]
  if r and r[2] < 256 then
    for x = r[1], r[2] do add(x) end
    return out, n
  end
  if r then
    for k = 0, 52 do
      for d = -2, 2 do
        for _, x in ipairs {2 ^ k + d, 1.5 * 2 ^ k + d, 1.75 * 2 ^ k + d} do
          x = x // 1
          if x <= r[2] then both(x) end
        end
      end
    end
    add(r[1])
    return out, n
  end
  local f = formats[S]
  add(0 / 0)
  if S ~= e4m3 then both(inf) end
  if f and f[2] < 20 then
    for m = 0, count(f) - 1 do both((value(f, m))) end
    return out, n
  end
  local digits, least = f and 23 or 52, f and -149 or -1074
  -- x and its neighbours in S, of both signs.
  local function around(x)
    local e = x > 0 and math.floor(math.log(x, 2)) or least
    if 2 ^ e > x then e = e - 1 elseif 2 ^ (e + 1) <= x then e = e + 1 end
    local step = 2 ^ math.max(e - digits, least)
    both(x)
    both(x + step)
    both(x - step)
  end
  local t = formats[T]
  if t and t[2] < 20 then
    for m = 0, count(t) - 1 do
      local x, e = value(t, m)
      around(x + 2 ^ (e - t[2] - 1))
    end
  else
    for e = -140, 127 do
      for _, x in ipairs {1, 1.5, 1 + 2 ^ -23, 1 + 2 ^ -24, 1 + 3 * 2 ^ -24, 2 - 2 ^ -24} do
        around(x * 2 ^ e)
      end
    end
    for k = 0, 600 do around(k / 2) end
  end
  return out, n
end

local cases = {}
local all = {f64, f32, f16, bf16, e4m3, e5m2, s64, s32, s8, u8, bool}
for _, S in ipairs(all) do
  for _, T in ipairs(all) do
    cases[#cases + 1] = {shape = {M = M}, const = {S = S, T = T}}
  end
end

return kernel {
  name = "casts",
  const = {S = {f32, any}, T = {f16, any}},
  args = {tensor("X", "S", "M", 128), out("Y", f64, "M", 128)},
  grid = function(d) return cdiv(d.M, 8) end,
  body = function(a, d, c, i)
    local x = a.X:tile({i * 8, 0}, {8, 128})
    a.Y:store({i * 8, 0}, cast(cast(x, c.T), f64))
  end,
  inputs = function(shape, rng, c)
    local x, n = values(c.S, c.T)
    for k = n + 1, shape.M * 128 do x[k] = x[(k - 1) % n + 1] end
    assert(#x == shape.M * 128)
    return {X = x}
  end,
  oracle = function(t, d, c) return cast(t.X, c.T) end,
  cases = cases,
}
