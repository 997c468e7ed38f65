-- C = sum over k of (SA SB) (A . B^T): matrix product of 8-bit floats with block scales.
--
-- A is [M, K] with a scale for 1 x 128 elements: SA is [M, K / 128], rounded up. B is [N, K] with a
-- scale for 128 x 128: SB is [N / 128, K / 128], rounded up. C is [M, N]. The product of each block
-- of k is scaled in f32 before it is added.

local BLOCK = 128

return kernel {
  name = "gemm_fp8",
  const = { T = {e4m3, e5m2}, O = {bf16, f16, f32} },
  args = {
    tensor("A", "T", "M", "K"), tensor("B", "T", "N", "K"),
    tensor("SA", f32, "M", "cdiv(K, 128)"), tensor("SB", f32, "cdiv(N, 128)", "cdiv(K, 128)"),
    out("C", "O", "M", "N"),
  },
  tune = { BM = {128, 64, 256}, BN = {128, 64, 256}, BK = {32, 64, 128} },
  legal = function(c) return c.BM * c.BN <= 128 * 256 end,
  grid = function(d, c) return cdiv(d.M, c.BM), cdiv(d.N, c.BN) end,
  body = function(a, d, c, i, j)
    local m, n = i * c.BM, j * c.BN
    local SA, SB = a.SA:every(1, BLOCK), a.SB:every(0, BLOCK):every(1, BLOCK)
    local acc = zeros(f32, c.BM, c.BN)
    for k in range(0, d.K, c.BK) do
      local x, y = a.A:tile({m, k}, {c.BM, c.BK}), a.B:tile({n, k}, {c.BN, c.BK})
      local scale = SA:tile({m, k}, {c.BM, 1}) * SB:tile({n, k}, {c.BN, 1}):T()
      acc = acc + dot(x, y:T()) * scale
    end
    a.C:store({m, n}, cast(acc, c.O))
  end,
  oracle = function(t, d)
    local sa = t.SA:every(1, BLOCK):slice({0, 0}, {d.M, d.K})
    local sb = t.SB:every(0, BLOCK):every(1, BLOCK):slice({0, 0}, {d.N, d.K})
    return matmul(t.A * sa, (t.B * sb):T())
  end,
  inputs = function(s, rng) -- whole, so that products of whole numbers are compared exactly
    local blocks = cdiv(s.K, BLOCK)
    return {SA = rng:int(1, 5, s.M, blocks), SB = rng:int(1, 5, cdiv(s.N, BLOCK), blocks)}
  end,
  cases = {
    {shape = {M = 1, N = 160, K = 256}}, {shape = {M = 129, N = 130, K = 385}, seed = 1},
    {shape = {M = 1003, N = 96, K = 256}, seed = 2},
    {shape = {M = 1061, N = 136, K = 128}, const = {O = f32}, set = {BK = 64}, seed = 3},
    {shape = {M = 1087, N = 33, K = 192}, const = {T = e5m2, O = f16}, layout = {B = "col"},
     seed = 4},
    {shape = {M = 1000, N = 40, K = 130}, seed = 6},
    {shape = {M = 1025, N = 40, K = 129}, seed = 7},
    {shape = {M = 1100, N = 40, K = 96}, set = {BM = 256, BN = 64}, seed = 8},
    {shape = {M = 70, N = 300, K = 130}, set = {BM = 64, BN = 64, BK = 32}, layout = {SA = "col"},
     seed = 5},
    {shape = {M = 9, N = 17, K = 0}}, {shape = {M = 0, N = 17, K = 128}},
  },
}
