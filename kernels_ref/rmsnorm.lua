-- Root-mean-square norm: Y[m, :] = X[m, :] / sqrt(mean(X[m, :]^2) + eps) * W. X, Y are [M, N], W is
-- [N]. A program holds whole rows, so X is read once; N is fixed at compile time.

return kernel {
  name = "rmsnorm",
  const = { T = {bf16, f16, f32}, N = {4096, any} },
  args = {
    tensor("X", "T", "M", "N"), tensor("W", "T", "N"), scalar("eps", f32), out("Y", "T", "M", "N"),
  },
  tune = { BM = {1, 2, 4, 8} },
  grid = function(d, c) return cdiv(d.M, c.BM) end,
  body = function(a, d, c, i)
    local x = cast(a.X:tile({i * c.BM, 0}, {c.BM, c.N}), f32)
    local w = cast(a.W:tile({0}, {c.N}):row(), f32)
    local r = rsqrt(rowsum(x * x) * (1 / c.N) + a.eps)
    a.Y:store({i * c.BM, 0}, cast(x * r * w, c.T))
  end,
  oracle = function(t, d, c)
    return t.X / sqrt(sum(t.X * t.X, 1) / c.N + t.eps) * t.W:row()
  end,
  cases = {
    {shape = {M = 5, N = 1000}, scalar = {eps = 1e-5}},
    {shape = {M = 3, N = 4096}, const = {T = f16}, scalar = {eps = 1e-6}, seed = 1},
    {shape = {M = 4, N = 63}, const = {T = f32}, scalar = {eps = 1e-5}, seed = 2},
    {shape = {M = 9, N = 257}, layout = {X = "col"}, scalar = {eps = 1e-5}, seed = 3},
    {shape = {M = 3, N = 32768}, scalar = {eps = 1e-5}, seed = 4},
  },
}
