-- Case 16 of those that broke other systems (docs/cases.md): what docs/numerics.md says of values
-- at the edges of each dtype, on the interpreter, the emulator and a GPU. Results leave as integers
-- that hold their bits (NaN as 12345): the sign of a zero and each bit of a denormal count.
-- kiln test tests/gpu/sweep_cases_values.lua --root . --on gpu --exact

local NAN <const> = 12345
local floats = {f32, f16, bf16}

-- The bits of values, of those of 16 bits in f32.
local function bits_of(x)
  local n = cast(bitcast(cast(x, f32), s32), s64)
  return where(x == x, n, NAN)
end

local edges = {
  [f32] = {2 ^ -149, 2 ^ -126, 2 ^ -126 - 2 ^ -149, 2 ^ -127, 2 ^ 127 * (2 - 2 ^ -23), 2 ^ 24 + 2,
           1 + 2 ^ -23},
  [f16] = {2 ^ -24, 2 ^ -14, 2 ^ -14 - 2 ^ -24, 2 ^ -15, 65504, 2049, 1 + 2 ^ -10},
  [bf16] = {2 ^ -133, 2 ^ -126, 2 ^ -126 - 2 ^ -133, 2 ^ -127, 2 ^ 127 * (2 - 2 ^ -7), 257,
            1 + 2 ^ -7},
}

-- Every pair of edge values, of both signs, zeros, infinities and NaN.
local function pairs_of(T)
  local v = {0.0, -0.0, inf, -inf, 0 / 0, 1.0, -1.0, 0.5, 3.0}
  for _, x in ipairs(edges[T]) do
    v[#v + 1] = x
    v[#v + 1] = -x
  end
  local X, Y = {}, {}
  for k = 1, 1024 do
    X[k], Y[k] = v[(k - 1) % #v + 1], v[(k - 1) // #v % #v + 1]
  end
  assert(#v * #v <= 1024)
  return X, Y
end

local function binary(name, f, types)
  local cases = {}
  for n, T in ipairs(types or floats) do cases[n] = {shape = {N = 1024}, const = {T = T}} end
  return kernel {
    name = name,
    const = { T = floats },
    args = { tensor("X", "T", "N"), tensor("Y", "T", "N"), out("R", s64, "N") },
    grid = function(d) return cdiv(d.N, 256) end,
    body = function(a, d, c, i)
      local x, y = a.X:tile({i * 256}, {256}), a.Y:tile({i * 256}, {256})
      a.R:store({i * 256}, bits_of(f(x, y, c.T)))
    end,
    inputs = function(s, rng, c)
      local X, Y = pairs_of(c.T)
      return {X = X, Y = Y}
    end,
    cases = cases,
  }
end

local kernels = {
  case16_copy = binary("case16_copy", function(x) return x end),
  case16_negate = binary("case16_negate", function(x) return -x end),
  case16_abs = binary("case16_abs", function(x) return abs(x) end),
  case16_min = binary("case16_min", function(x, y) return min(x, y) end),
  case16_max = binary("case16_max", function(x, y) return max(x, y) end),
  case16_select = binary("case16_select", function(x, y) return where(x < y, x, -y) end),
  case16_clamp = binary("case16_clamp", function(x, y) return clamp(x, -1, 1) end),
  case16_add = binary("case16_add", function(x, y) return x + y end, {f32}),
  case16_subtract = binary("case16_subtract", function(x, y) return x - y end, {f32}),
  case16_multiply = binary("case16_multiply", function(x, y) return x * y end, {f32}),
  case16_widen = binary("case16_widen", function(x, y, T) return cast(cast(x, f32), T) end),
}

-- ---- f32 is not tf32 ----

-- Whole numbers whose product loses its last bits where fewer than 24 are kept.
local function dot_kernel(name, T, O, prec, inputs, cases, schedule)
  return kernel {
    name = name,
    const = { T = {T} },
    args = { tensor("A", "T", "M", "K"), tensor("B", "T", "N", "K"), out("C", O, "M", "N") },
    tune = { BM = {64, 16}, BN = {64, 8}, BK = {32, 16, 64} },
    grid = function(d, c) return cdiv(d.M, c.BM), cdiv(d.N, c.BN) end,
    body = function(a, d, c, i, j)
      local acc = zeros((T == s8 or T == u8) and s32 or f32, c.BM, c.BN)
      for k in range(0, d.K, c.BK) do
        acc = dot(a.A:tile({i * c.BM, k}, {c.BM, c.BK}),
                a.B:tile({j * c.BN, k}, {c.BN, c.BK}):T(), acc, prec and {prec = prec} or nil)
      end
      a.C:store({i * c.BM, j * c.BN}, cast(acc, O))
    end,
    oracle = function(t) return cast(matmul(t.A, t.B:T()), O) end,
    inputs = inputs, cases = cases, schedule = schedule,
  }
end
local sizes = {{shape = {M = 32, N = 24, K = 1}}, {shape = {M = 40, N = 23, K = 24}},
               {shape = {M = 32, N = 24, K = 64}, set = {BM = 16, BN = 8, BK = 16}}}
local function all_bits(s)
  local A, B = {}, {}
  for m = 0, s.M - 1 do
    for k = 0, s.K - 1 do A[#A + 1] = k == m % s.K and 2 ^ 23 + 2 ^ (m % 23) or 0 end
  end
  for n = 0, s.N - 1 do
    for k = 0, s.K - 1 do B[#B + 1] = 2 ^ (n % 8) end
  end
  return {A = A, B = B}
end
kernels.case16_f32_keeps_24_bits =
  dot_kernel("case16_f32_keeps_24_bits", f32, f32, nil, all_bits, sizes)

-- ---- sums of e4m3 over long K ----

-- The largest product first and then ones: what keeps few bits of sums loses them.
local long = {}
for n, K in ipairs {33, 512, 1000, 4096} do long[n] = {shape = {M = 17, N = 9, K = K}} end
local function spiked(s)
  local A, B = {}, {}
  for m = 0, s.M - 1 do
    for k = 0, s.K - 1 do A[#A + 1] = k == m * 37 % s.K and 448 or 1 end
  end
  for n = 0, s.N - 1 do
    for k = 0, s.K - 1 do B[#B + 1] = n == 0 and k < 20 and 448 or 1 end
  end
  return {A = A, B = B}
end
kernels.case16_e4m3_long_sums = dot_kernel("case16_e4m3_long_sums", e4m3, f32, nil, spiked, long)
kernels.case16_e4m3_ieee = dot_kernel("case16_e4m3_ieee", e4m3, f32, "ieee", spiked, long)

-- ---- saturation of s8 and of 8-bit floats; NaN of 8-bit floats ----

kernels.case16_s8_saturates = dot_kernel("case16_s8_saturates", s8, s8, nil, function(s, rng)
  return {A = rng:int(-128, 128, s.M, s.K), B = rng:int(-128, 128, s.N, s.K)}
end, {{shape = {M = 33, N = 24, K = 1}}, {shape = {M = 33, N = 24, K = 300}}})

-- All bytes of the 8-bit floats, as what they are and as what they become again.
local function bytes(name, T)
  return kernel {
    name = name,
    args = { tensor("X", u8, "N"), out("R", s64, "N"), out("Z", u8, "N") },
    grid = function(d) return cdiv(d.N, 64) end,
    body = function(a, d, c, i)
      local x = bitcast(a.X:tile({i * 64}, {64}), T)
      a.R:store({i * 64}, bits_of(cast(x, f32)))
      local again = bitcast(cast(cast(x, f32), T), u8)
      a.Z:store({i * 64}, where(cast(x, f32) == cast(x, f32), again, u8(0)))
    end,
    inputs = function(s)
      local X = {}
      for k = 1, s.N do X[k] = (k - 1) % 256 end
      return {X = X}
    end,
    cases = {{shape = {N = 256}}},
  }
end
kernels.case16_e4m3_bytes = bytes("case16_e4m3_bytes", e4m3)
kernels.case16_e5m2_bytes = bytes("case16_e5m2_bytes", e5m2)

-- ---- rows of softmax of which nothing is left ----

kernels.case16_masked_softmax = kernel {
  name = "case16_masked_softmax",
  const = { T = floats, N = {64, any} },
  args = { tensor("X", "T", "M", "N"), out("Y", "T", "M", "N") },
  tune = { BM = {4} },
  grid = function(d, c) return cdiv(d.M, c.BM) end,
  body = function(a, d, c, i)
    local x = cast(a.X:tile({i * c.BM, 0}, {c.BM, c.N}), f32)
    local e = exp(x - rowmax(x))
    a.Y:store({i * c.BM, 0}, cast(e / rowsum(e), c.T))
  end,
  inputs = function(s) -- all masked; one left; one infinite; all infinite; NaN; one very low; equal
    local X = {}
    for m = 0, s.M - 1 do
      for n = 0, s.N - 1 do
        local last = n == m * 5 % s.N
        X[#X + 1] = ({-inf, last and 1.0 or -inf, last and inf or 0, inf, last and 0 / 0 or 1,
                      last and -60000.0 or -inf, 2.5})[m % 7 + 1]
      end
    end
    return {X = X}
  end,
  oracle = function(t)
    local e = exp(t.X - rowmax(t.X))
    return e / rowsum(e)
  end,
  cases = {
    {shape = {M = 14, N = 64}}, {shape = {M = 7, N = 33}, const = {T = f16}},
    {shape = {M = 7, N = 1}, const = {T = bf16}}, {shape = {M = 21, N = 250}, const = {T = bf16}},
  },
}
return kernels
