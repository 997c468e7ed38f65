-- C = A . W^T with 4-bit weights: W[n, k] stands for (Q[n, k] - Z[n, k / G]) * S[n, k / G].
--
-- A is [M, K] and C is [M, N], of 16-bit floats. Q is [N, K] of s4 or u4, two elements a byte, the
-- low bits first. S and the zero points Z are [N, K / G], rounded up; Z may be absent. Weights are
-- dequantised in f32 and rounded to A's dtype; products accumulate in f32.

return kernel {
  name = "gemm_s4",
  const = { T = {bf16, f16}, Q = {s4, u4}, G = {128, 64, 32, any} },
  args = {
    tensor("A", "T", "M", "K"), tensor("Q", "Q", "N", "K"), tensor("S", "T", "N", "cdiv(K, G)"),
    optional(tensor("Z", "Q", "N", "cdiv(K, G)")), out("C", "T", "M", "N"),
  },
  tune = { BM = {64, 128, 16}, BN = {64, 128, 256}, BK = {64, 128, 32} },
  grid = function(d, c) return cdiv(d.M, c.BM), cdiv(d.N, c.BN) end,
  body = function(a, d, c, i, j)
    local m, n, size = i * c.BM, j * c.BN, {c.BN, c.BK}
    local S, Z = a.S:every(1, c.G), a.Z and a.Z:every(1, c.G)
    local acc = zeros(f32, c.BM, c.BN)
    for k in range(0, d.K, c.BK) do
      local w = cast(a.Q:tile({n, k}, size), f32)
      if Z then w = w - cast(Z:tile({n, k}, size), f32) end
      w = cast(w * cast(S:tile({n, k}, size), f32), c.T)
      acc = acc + dot(a.A:tile({m, k}, {c.BM, c.BK}), w:T())
    end
    a.C:store({m, n}, cast(acc, c.T))
  end,
  oracle = function(t, d, c)
    local function spread(x) return x:every(1, c.G):slice({0, 0}, {d.N, d.K}) end
    local q = t.Z and t.Q - spread(t.Z) or t.Q
    return matmul(t.A, cast(q * spread(t.S), c.T):T())
  end,
  inputs = function(s, rng, c)
    local lo, hi = c.Q == s4 and -8 or 0, c.Q == s4 and 7 or 15
    local groups = cdiv(s.K, c.G)
    return {
      Q = rng:int(lo, hi, s.N, s.K), Z = rng:int(lo, hi, s.N, groups),
      S = rng:uniform(0.01, 0.1, s.N, groups),
    }
  end,
  cases = {
    {shape = {M = 16, N = 130, K = 256}}, {shape = {M = 1, N = 128, K = 384}, absent = {"Z"}},
    {shape = {M = 65, N = 63, K = 129}, const = {T = f16, Q = u4}, seed = 1},
    {shape = {M = 33, N = 70, K = 100}, const = {Q = u4, G = 32}, layout = {A = "col"}, seed = 2},
    {shape = {M = 17, N = 40, K = 210}, const = {G = 70}, set = {BM = 16, BK = 32},
     layout = {Q = "col"}, seed = 3},
    {shape = {M = 5, N = 9, K = 0}, absent = {"Z"}}, {shape = {M = 0, N = 9, K = 64}},
  },
}
