-- C = A . B^T in the types and ways that cuBLAS has beside f16 and bf16: tf32, 8-bit floats whose
-- sums are promoted to f32, 8-bit integers summed in s32.
--
-- A is [M, K], B is [N, K], C is [M, N]; any strides.

local function product(k)
  return kernel {
    name = k.name,
    const = k.const,
    args = {tensor("A", "T", "M", "K"), tensor("B", k.B or "T", "N", "K"), out("C", "O", "M", "N")},
    tune = {BM = {128, 64, 256}, BN = {128, 64, 192, 256}, BK = k.BK},
    legal = function(c) return c.BM * c.BN <= 128 * 256 end,
    grid = function(d, c) return cdiv(d.M, c.BM), cdiv(d.N, c.BN) end,
    body = function(a, d, c, i, j)
      local m, n = i * c.BM, j * c.BN
      local acc = zeros(k.sum, c.BM, c.BN)
      for l in range(0, d.K, c.BK) do
        local x, y = a.A:tile({m, l}, {c.BM, c.BK}), a.B:tile({n, l}, {c.BN, c.BK})
        acc = acc + dot(x, y:T(), {prec = k.prec or "ieee"})
      end
      a.C:store({m, n}, cast(acc, c.O))
    end,
    oracle = function(t) return matmul(t.A, t.B:T()) end,
    inputs = k.inputs,
    cases = k.cases,
  }
end

local shapes = {
  {shape = {M = 128, N = 128, K = 128}}, {shape = {M = 65, N = 127, K = 33}},
  {shape = {M = 17, N = 63, K = 250}, layout = {A = "col"}},
  {shape = {M = 136, N = 72, K = 272}}, {shape = {M = 16, N = 8, K = 0}},
  {shape = {M = 1, N = 1, K = 1}},
}
-- The shapes, with constants by turns.
local function cases(...)
  local list = {}
  for i, s in ipairs(shapes) do
    local const = select((i - 1) % select("#", ...) + 1, ...)
    list[i] = {shape = s.shape, layout = s.layout, const = const, seed = i}
  end
  return list
end

return {
  -- The inputs are numbers that tf32 holds, as f16 does: what differs from f32 is the unit's sums.
  gemm_tf32 = product {
    name = "gemm_tf32", const = {T = {f32}, O = {f32}}, sum = f32, prec = "tf32", BK = {32, 64, 16},
    inputs = function(s, rng)
      return {A = cast(rng:normal(s.M, s.K), f16), B = cast(rng:normal(s.N, s.K), f16)}
    end,
    cases = cases({}),
  },
  gemm_e4m3 = product {
    name = "gemm_e4m3", const = {T = {e4m3, e5m2}, U = {e4m3, e5m2}, O = {bf16, f16}}, B = "U",
    sum = f32, prec = "promoted", BK = {32, 64, 128},
    cases = cases({}, {U = e5m2}, {T = e5m2, O = f16}),
  },
  gemm_s8 = product {
    name = "gemm_s8", const = {T = {s8}, O = {s32}}, sum = s32, BK = {128, 64, 32},
    cases = cases({}),
  },
}
