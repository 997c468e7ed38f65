-- Rows of A in groups, each times a matrix of its own: C[m, :] = A[m, :] . B[e]^T for the rows
-- offsets[e] <= m < offsets[e + 1], as the experts of a mixture.
--
-- A is [M, K], B is [E, N, K], C is [M, N], offsets is [E + 1]: ascending, from 0 to M. Groups may
-- be empty and of any length. Each begins a tile of rows of its own, so M // BM + E tiles are
-- enough; programs that are left over do nothing.

return kernel {
  name = "gemm_grouped",
  const = { T = {bf16, f16, f32} },
  args = {
    tensor("A", "T", "M", "K"), tensor("B", "T", "E", "N", "K"), tensor("offsets", s32, "E + 1"),
    out("C", "T", "M", "N"),
  },
  tune = { BM = {128, 64}, BN = {128, 64, 256}, BK = {64, 32} },
  grid = function(d, c) return d.M // c.BM + d.E, cdiv(d.N, c.BN) end,
  body = function(a, d, c, i, j)
    -- The group of the program's tile: the i-th, counted from the first group on.
    local group, row, tiles = -1, 0, 0
    for e in range(0, d.E) do
      local lo, hi = a.offsets:at(e), a.offsets:at(e + 1)
      local upto = tiles + cdiv(hi - lo, c.BM)
      if i >= tiles and i < upto then group, row = e, (i - tiles) * c.BM end
      tiles = upto
    end
    if group >= 0 then
      local lo, hi = a.offsets:at(group), a.offsets:at(group + 1)
      local A, B = a.A:slice({lo, 0}, {hi - lo, d.K}), a.B:at(group)
      local acc = zeros(f32, c.BM, c.BN)
      for k in range(0, d.K, c.BK) do
        acc = acc + dot(A:tile({row, k}, {c.BM, c.BK}), B:tile({j * c.BN, k}, {c.BN, c.BK}):T())
      end
      a.C:slice({lo, 0}, {hi - lo, d.N}):store({row, j * c.BN}, cast(acc, c.T))
    end
  end,
  oracle = function(t, d)
    local parts = {}
    for e = 0, d.E - 1 do
      local lo, hi = t.offsets:at(e), t.offsets:at(e + 1)
      parts[e + 1] = matmul(t.A:slice({lo, 0}, {hi - lo, d.K}), t.B:at(e):T())
    end
    return cat(0, table.unpack(parts))
  end,
  inputs = function(s, rng)
    local offsets = {0}
    for e = 1, s.E do
      local left = s.M - offsets[e]
      local n = rng:int(0, 3) > 0 and rng:int(0, min(left, 2 * cdiv(s.M, s.E))) or 0
      offsets[e + 1] = e == s.E and s.M or offsets[e] + n
    end
    return {offsets = offsets}
  end,
  cases = {
    {shape = {M = 300, N = 72, K = 65, E = 8}},
    {shape = {M = 128, N = 128, K = 64, E = 1}, seed = 1},
    {shape = {M = 200, N = 136, K = 40, E = 5}, const = {T = f16}, set = {BM = 64}, seed = 2},
    {shape = {M = 7, N = 33, K = 33, E = 16}, const = {T = f32}, layout = {A = "col"}, seed = 3},
    {shape = {M = 3, N = 4, K = 0, E = 2}}, {shape = {M = 0, N = 4, K = 8, E = 3}},
  },
}
