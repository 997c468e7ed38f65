-- Counts: H[b] = number of elements of X that equal b. X is [N], H is [B]; elements outside of
-- 0 .. B - 1 are not counted. H is added to: the caller clears it, or goes on counting.

local T = {s32, u8, s64}

-- The bins of the elements from n on, as a column; past the end -1, which is none.
local function bins(a, d, n, size)
  return where(n + iota(0, size) < d.N, cast(a.X:tile({n}, {size}), s32):col(), -1)
end

local function count(t, d)
  local h = t.H + 0
  for b = 0, d.B - 1 do h:store({b}, h:at(b) + sum(eq(t.X, b))) end
  return h
end

local function inputs(s, rng) -- from an eighth below to an eighth above, more of the low ones
  local x = rng:uniform(0, 1, s.N)
  return {X = floor(x * x * (s.B * 1.25) - s.B / 8), H = rng:int(0, 100, s.B)}
end

local cases = {
  {shape = {N = 5000, B = 64}}, {shape = {N = 3000, B = 200}, const = {T = u8}, seed = 1},
  {shape = {N = 2049, B = 1}, seed = 2}, {shape = {N = 2048, B = 300}, const = {T = s64}, seed = 3},
  {shape = {N = 1, B = 3}, seed = 4}, {shape = {N = 0, B = 5}},
}

return {
  -- One atomic addition an element: for many bins.
  histogram = kernel {
    name = "histogram",
    const = { T = T },
    args = { tensor("X", "T", "N"), inout("H", s32, "B") },
    tune = { BN = {2048, 1024, 4096} },
    grid = function(d, c) return cdiv(d.N, c.BN) end,
    body = function(a, d, c, i)
      a.H:atomic_add({bins(a, d, i * c.BN, c.BN)}, 1)
    end,
    oracle = count, inputs = inputs, cases = cases,
  },

  -- Counted by comparison first, then one atomic addition a bin and program: for few bins.
  histogram_few = kernel {
    name = "histogram_few",
    const = { T = T, B = {64, any} },
    args = { tensor("X", "T", "N"), inout("H", s32, "B") },
    tune = { BN = {1024, 512, 2048}, PART = {64, 32, 128} },
    grid = function(d, c) return cdiv(d.N, c.BN) end,
    body = function(a, d, c, i)
      local n, bin = zeros(s32, 1, c.B), cast(iota(1, c.B), s32)
      for k in range(0, c.BN, c.PART) do
        n = n + colsum(cast(bins(a, d, i * c.BN + k, c.PART) == bin, s32))
      end
      a.H:atomic_add({iota(1, c.B)}, n)
    end,
    oracle = count, inputs = inputs, cases = cases,
  },
}
