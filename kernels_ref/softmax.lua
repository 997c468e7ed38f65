-- Row softmax: Y[m, :] = exp(X[m, :] - max) / sum. X, Y are [M, N]. A program holds whole rows, so
-- memory is read once; N is fixed at compile time. A row of -inf alone gives NaN, as 0 * (1 / 0);
-- one of the lowest finite numbers, as masks may leave, is uniform.

return kernel {
  name = "softmax",
  const = { T = {bf16, f16, f32}, N = {4096, any} },
  args = { tensor("X", "T", "M", "N"), out("Y", "T", "M", "N") },
  tune = { BM = {1, 2, 4, 8} },
  grid = function(d, c) return cdiv(d.M, c.BM) end,
  body = function(a, d, c, i)
    local x = cast(a.X:tile({i * c.BM, 0}, {c.BM, c.N}, {pad = -inf}), f32)
    local p = exp2((x - rowmax(x)) * log2e)
    a.Y:store({i * c.BM, 0}, cast(p * (1 / rowsum(p)), c.T)) -- one division a row
  end,
  oracle = function(t) return softmax(t.X) end,
  cases = {
    {shape = {M = 5, N = 1000}}, {shape = {M = 3, N = 4096}, const = {T = f16}, seed = 1},
    {shape = {M = 4, N = 63}, const = {T = f32}, seed = 2}, {shape = {M = 1, N = 1}, seed = 3},
    {shape = {M = 9, N = 257}, layout = {X = "col"}, seed = 4}, {shape = {M = 0, N = 16}},
    {shape = {M = 3, N = 32768}, seed = 5},
  },
}
