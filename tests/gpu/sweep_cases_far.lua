-- Case 6 of those that broke other systems (docs/cases.md): elements further than 2^31 from an
-- argument's first, in few rows that lie far apart. Gigabytes for each case: for a GPU. On the
-- emulator tests/unit/test_emu_cases.c has them in memory that is not there.
-- kiln test tests/gpu/sweep_cases_far.lua --root . --on gpu --exact

local far <const> = (1 << 30) + 64 -- three rows reach over 2^31

local copy = kernel {
  name = "case6_copy",
  args = { tensor("X", u8, "M", "N"), out("Y", u8, "M", "N") },
  grid = function(d) return cdiv(d.M, 2), cdiv(d.N, 64) end,
  body = function(a, d, c, i, j)
    a.Y:store({i * 2, j * 64}, a.X:tile({i * 2, j * 64}, {2, 64}))
  end,
  oracle = function(t) return t.X + 0 end,
  inputs = function(s, rng) return {X = rng:int(0, 128, s.M, s.N)} end,
  cases = {
    {shape = {M = 3, N = 100}, stride = {X = {far, 1}}},
    {shape = {M = 3, N = 100}, stride = {Y = {far - 1, 1}}, seed = 1},
  },
}

local product = kernel {
  name = "case6_product",
  args = { tensor("A", bf16, "M", "K"), tensor("B", bf16, "N", "K"), out("C", bf16, "M", "N") },
  tune = { BM = {64}, BN = {64}, BK = {64} },
  grid = function(d, c) return cdiv(d.M, c.BM), cdiv(d.N, c.BN) end,
  body = function(a, d, c, i, j)
    local acc = zeros(f32, c.BM, c.BN)
    for k in range(0, d.K, c.BK) do
      acc = acc + dot(a.A:tile({i * c.BM, k}, {c.BM, c.BK}),
                      a.B:tile({j * c.BN, k}, {c.BN, c.BK}):T())
    end
    a.C:store({i * c.BM, j * c.BN}, cast(acc, bf16))
  end,
  oracle = function(t) return matmul(t.A, t.B:T()) end,
  cases = {
    {shape = {M = 66, N = 72, K = 72}, stride = {A = {(1 << 25) + 8, 1}},
     schedule = {warpgroups = 1}},
    {shape = {M = 66, N = 72, K = 72}, stride = {C = {(1 << 25) + 8, 1}},
     schedule = {warpgroups = 1}, seed = 1},
    {shape = {M = 66, N = 72, K = 72}, stride = {C = {(1 << 25) + 1, 1}},
     schedule = {warpgroups = 0}, seed = 2},
  },
}

return { case6_copy = copy, case6_product = product }
