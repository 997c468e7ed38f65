-- C = f(A . B^T + bias + R): matrix product with fused epilogues.
--
-- A is [M, K], B is [N, K], C and the residual R are [M, N], bias is [N]; any strides, so the four
-- major-ness combinations (NN, NT, TN, TT) are one kernel. Products accumulate in f32; the epilogue
-- computes in f32 and rounds once. bias and R may be absent.

local function identity(x) return x end

local function gemm(name, activation, reference)
  return kernel {
    name = name,
    const = { T = {bf16, f16, f32} },
    args = {
      tensor("A", "T", "M", "K"), tensor("B", "T", "N", "K"),
      optional(tensor("bias", "T", "N")), optional(tensor("R", "T", "M", "N")),
      out("C", "T", "M", "N"),
    },
    tune = { BM = {128, 64, 256}, BN = {128, 64, 96, 160, 192, 224, 256}, BK = {64, 32, 16} },
    legal = function(c) return c.BM * c.BN <= 128 * 256 end,
    grid = function(d, c) return cdiv(d.M, c.BM), cdiv(d.N, c.BN) end,
    body = function(a, d, c, i, j)
      local m, n = i * c.BM, j * c.BN
      local acc = zeros(f32, c.BM, c.BN)
      for k in range(0, d.K, c.BK) do
        acc = acc + dot(a.A:tile({m, k}, {c.BM, c.BK}), a.B:tile({n, k}, {c.BN, c.BK}):T())
      end
      if a.bias then acc = acc + cast(a.bias:tile({n}, {c.BN}):row(), f32) end
      if a.R then acc = acc + cast(a.R:tile({m, n}, {c.BM, c.BN}), f32) end
      a.C:store({m, n}, cast(activation(acc), c.T))
    end,
    oracle = function(t, d, c)
      local x = matmul(t.A, t.B:T())
      if t.bias then x = x + t.bias:row() end
      if t.R then x = x + t.R end
      return reference(x)
    end,
    cases = {
      {shape = {M = 64, N = 128, K = 96}},
      {shape = {M = 128, N = 128, K = 128}, const = {T = f16}, layout = {B = "col"}, seed = 1},
      {shape = {M = 65, N = 127, K = 33}, const = {T = f32}, seed = 2},
      {shape = {M = 17, N = 63, K = 250}, layout = {A = "col"}, absent = {"R"}, seed = 3},
      {shape = {M = 119, N = 104, K = 24}, layout = {A = "col", B = "col"}, absent = {"bias", "R"}},
      {shape = {M = 16, N = 8, K = 0}, seed = 4},
      {shape = {M = 0, N = 8, K = 8}, seed = 5},
      {shape = {M = 1, N = 1, K = 1}, const = {T = f16}, seed = 6},
    },
  }
end

return {
  gemm = gemm("gemm", identity, identity),
  gemm_relu = gemm("gemm_relu", relu, relu),
  gemm_gelu = gemm("gemm_gelu", gelu, gelu),
  gemm_gelu_tanh = gemm("gemm_gelu_tanh", gelu_tanh, gelu_tanh),
  gemm_silu = gemm("gemm_silu", silu, silu),
}
