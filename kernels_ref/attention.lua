-- Attention, forward: O = softmax(score(Q K^T * scale)) V for every head, softmax over the keys that
-- a query may see. Q, O are [B, H, M, D], K, V are [B, G, N, D], any strides (so also B, M, H, D in
-- memory); query head h reads head h * G // H of K and V. The last query stands beside the last key.
-- causal: no key after the query; window > 0: keys nearer than that. score(x, row, col, h) changes
-- scores, any Lua function. A query that sees no key gives 0, and -inf in L, the optional log of
-- the sum of exponentials, [B, H, M]. Scores and sums are f32; P is rounded to the dtype of V.
--
-- Packed sequences (varlen): Q, O are [M, H, D], K, V are [N, G, D], L is [M, H]; sequence b has the
-- rows qs[b] to qs[b + 1] of Q and ks[b] to ks[b + 1] of K; qs, ks are [P], P - 1 sequences.

local lowest = -3e38 -- where maxima start: never -inf, so that x - m is never -inf - -inf

-- How two parts of the keys of one query make a whole.
local function merge(p, q)
  local m = max(p.m, q.m)
  local rp, rq = exp2(p.m - m), exp2(q.m - m)
  return {m = m, l = p.l * rp + q.l * rq, acc = p.acc * rp + q.acc * rq}
end

-- Queries from `first` on of one head: Q, O [M, D], K, V [N, D], L [M] are views.
local function forward(c, score, scale, first, h, Q, K, V, O, L)
  local M, N, size = Q:size(0), K:size(0), {c.BN, c.D}
  local q, row = Q:tile({first, 0}, {c.BM, c.D}), first + N - M + iota(0, c.BM)
  local m, l = full(f32, lowest, c.BM, 1), zeros(f32, c.BM, 1)
  local acc, lo, hi = zeros(f32, c.BM, c.D), 0, N
  if c.causal then hi = min(hi, first + N - M + c.BM) end
  if c.window > 0 then lo = max(lo, first + N - M - c.window + 1) // c.BN * c.BN end
  for n in range(lo, hi, c.BN) do
    local col, x = n + iota(1, c.BN), dot(q, K:tile({n, 0}, size):T())
    x = score and score(x * scale, row, col, h) * log2e or x * (scale * log2e)
    local seen = col < N
    if c.causal then seen = seen and col <= row end
    if c.window > 0 then seen = seen and abs(row - col) < c.window end
    x = where(seen, x, -inf)
    local mx = max(m, rowmax(x))
    local p, r = exp2(x - mx), exp2(m - mx)
    l, acc, m = l * r + rowsum(p), acc * r + dot(cast(p, c.T), V:tile({n, 0}, size)), mx
  end
  O:store({first, 0}, cast(where(l > 0, acc / l, 0), c.T))
  if L then L:store({first}, (m / log2e + log(l)):reshape(c.BM)) end
end

local const = { T = {bf16, f16, f32}, D = {128, 64, any}, causal = {true, false}, window = {0, any} }
local tune = { BM = {128, 64, 32}, BN = {64, 128, 32} }

local function reference(score, t, d, c)
  local row, col = iota(0, d.M) + (d.N - d.M), iota(1, d.N)
  local seen = c.causal and le(col, row) or full(f64, 1, d.M, d.N)
  if c.window > 0 then seen = seen * lt(abs(row - col), c.window) end
  local x = matmul(t.Q:reshape(d.B, d.G, d.H // d.G * d.M, d.D), t.K:T()) * t.scale
  x = x:reshape(d.B, d.H, d.M, d.N)
  if score then
    x = score(x, row:reshape(1, 1, d.M, 1), col:reshape(1, 1, 1, d.N), iota(0, d.H):reshape(1, d.H, 1, 1))
  end
  x = where(seen:reshape(1, 1, d.M, d.N), x, -inf)
  local m = max(amax(x, 3), lowest)
  local p = exp(x - m)
  local l = sum(p, 3)
  local o = matmul((p / where(l, l, 1)):reshape(d.B, d.G, d.H // d.G * d.M, d.N), t.V)
  return o:reshape(d.B, d.H, d.M, d.D), (m + log(l)):reshape(d.B, d.H, d.M)
end

local function attention(name, score, cases)
  return kernel {
    name = name, const = const, tune = tune, cases = cases,
    args = {
      tensor("Q", "T", "B", "H", "M", "D"), tensor("K", "T", "B", "G", "N", "D"),
      tensor("V", "T", "B", "G", "N", "D"), scalar("scale", f32),
      out("O", "T", "B", "H", "M", "D"), optional(out("L", f32, "B", "H", "M")),
    },
    grid = function(d, c) return cdiv(d.M, c.BM), d.H, d.B end,
    body = function(a, d, c, i, h, b)
      local g = h * d.G // d.H
      forward(c, score, a.scale, i * c.BM, h, a.Q:at(b, h), a.K:at(b, g), a.V:at(b, g), a.O:at(b, h),
              a.L and a.L:at(b, h))
    end,
    oracle = function(t, d, c)
      local o, l = reference(score, t, d, c)
      return {O = o, L = l}
    end,
  }
end

return {
  attention = attention("attention", nil, {
    {shape = {B = 1, H = 2, G = 1, M = 63, N = 63, D = 16}, set = {BM = 32, BN = 32}, scalar = {scale = 0.25}},
  }),
}
