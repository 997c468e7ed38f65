-- The K largest elements of each row, largest first, and where they are: X is [M, N], V and I are
-- [M, K]. Of equal elements the first comes first; NaN is larger than all numbers. A program holds
-- whole rows, so X is read once; N and K <= N are fixed at compile time.

return kernel {
  name = "topk",
  const = { T = {bf16, f16, f32}, N = {256, any}, K = {8, any} },
  args = { tensor("X", "T", "M", "N"), out("V", "T", "M", "K"), out("I", s32, "M", "K") },
  tune = { BM = {4, 1, 8, 16} },
  legal = function(c) return c.K <= c.N end,
  grid = function(d, c) return cdiv(d.M, c.BM) end,
  body = function(a, d, c, i)
    local m, col = i * c.BM, iota(1, c.N)
    local x = cast(a.X:tile({m, 0}, {c.BM, c.N}), f32)
    local left = full(bool, true, c.BM, c.N)
    for k in range(0, c.K) do
      local top = rowmax(where(left, x, -inf))
      local at = rowmin(where(left and (x == top or x ~= x), col, c.N))
      a.V:store({m, k}, cast(top, c.T))
      a.I:store({m, k}, at)
      left = left and col ~= at
    end
  end,
  oracle = function(t, d, c)
    local v, i = {}, {}
    for m = 0, d.M - 1 do
      local rank, order = {}, {}
      for n = 1, c.N do
        local x = t.X:at(m, n - 1)
        rank[n], order[n] = x ~= x and inf or x, n
      end
      table.sort(order, function(p, q)
        if rank[p] == rank[q] then return p < q end
        return rank[p] > rank[q]
      end)
      for k = 1, c.K do v[#v + 1], i[#i + 1] = t.X:at(m, order[k] - 1), order[k] - 1 end
    end
    return v, i
  end,
  inputs = function(s, rng) -- few values, so that many are equal; rows with too few numbers; NaN
    local x = round(rng:normal(s.M, s.N) * 3)
    return {X = where(gt(x, 6), 0 / 0, where(lt(x, iota(0, s.M) % 3 * 2 - 3), -inf, x))}
  end,
  cases = {
    {shape = {M = 9, N = 256, K = 8}},
    {shape = {M = 3, N = 100, K = 5}, const = {T = f32}, seed = 1},
    {shape = {M = 5, N = 16, K = 16}, const = {T = f16}, layout = {X = "col"}, seed = 2},
    {shape = {M = 2, N = 3000, K = 2}, seed = 3}, {shape = {M = 1, N = 1, K = 1}},
    {shape = {M = 0, N = 64, K = 2}},
  },
}
