-- What changes along an axis or in its bits: places of extremes, masks, running sums, bitcasts,
-- random numbers, rounding; over lengths, dtypes and layouts.
-- kiln test tests/gpu/sweep_folds.lua --root . --on gpu --exact

-- Y = f of a tile that holds whole rows. A kernel without an oracle is compared with its own
-- interpretation.
local function over_rows(name, types, result, width, f)
  return kernel {
    name = name,
    const = { T = types, N = {64, any}, BM = {4, any} },
    args = { tensor("X", "T", "M", "N"), out("Y", result, "M", width) },
    grid = function(d, c) return cdiv(d.M, c.BM) end,
    body = function(a, d, c, i)
      a.Y:store({i * c.BM, 0}, f(a.X:tile({i * c.BM, 0}, {c.BM, c.N}), c))
    end,
    inputs = function(s, rng, c) -- few values: many are equal
      local least = (c.T == u8 or c.T == u4) and 0 or -3
      return {X = rng:int(least, 4, s.M, s.N)}
    end,
    cases = {},
  }
end

local function cases(types, sizes)
  local list = {}
  for _, T in ipairs(types) do
    for _, N in ipairs(sizes) do
      local c = {shape = {M = 19, N = N}, const = {T = T}, seed = #list + 1}
      if N > 4000 then c.const.BM = 1 end
      list[#list + 1] = c
    end
    list[#list + 1] = {shape = {M = 33, N = 96}, const = {T = T}, layout = {X = "col"}, seed = 90}
    list[#list + 1] = {shape = {M = 33, N = 90}, const = {T = T}, layout = {Y = "col"}, seed = 91}
  end
  return list
end

local all = {bf16, f16, f32, f64, s8, u8, s32, s64, s4, u4}
local lengths = {2, 6, 32, 64, 126, 1000, 4096, 8192}
local out = {}
local function add(name, types, result, width, f)
  out[name] = over_rows(name, types, result, width, f):with {cases = cases(types, lengths)}
end
add("argmax", all, s32, 1, function(x) return cast(rowargmax(x), s32) end)
add("argmin", all, s64, 1, function(x) return cast(argmin(x, 1), s64) end)
add("any", all, bool, 1, function(x) return rowany(x == 4) end)
add("all", all, bool, 1, function(x) return rowall(x ~= 4) end)
add("cumsum", {f32, f64, s32, s64}, "T", "N", function(x) return cumsum(x, 1) end)
add("rounded", {bf16, f16, f32, f64}, "T", "N", function(x, c)
  return floor(x * 0.25) + ceil(x * 0.25) * 3 + round(x * 0.5) * 5 + trunc(x * 0.25) * 7
end)
add("swapped", {f32, s32}, "T", "N", function(x, c)
  return bitcast(bitcast(bitcast(x, s8), s4), c.T)
end)
add("noise", {s32}, s32, "N", function(x, c)
  return random_bits(7, cast(x, s64) * 4294967295 + cast(iota(1, c.N), s64), 2) ~ x
end)
return out
