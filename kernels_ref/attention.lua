-- Attention, forward: O = softmax(score(Q K^T * scale)) V per head, over the keys a query sees. Q,
-- O are [B, H, M, D], K, V are [B, G, N, D], of any strides: query head h reads head h * G // H.
-- The last query stands beside the last key. causal: keys up to the query; window > 0: keys nearer
-- than that. score(x, row, col, h), any function, changes scores. Scores and sums are f32, P is
-- rounded to V's dtype. L, which may be left out, is log(sum(exp(score))), [B, H, M]. A query that
-- sees no key gives 0, and -inf in L.
--
-- Packed sequences: Q, O are [M, H, D], K, V [N, G, D], L [M, H]; sequence b has rows qs[b] up to
-- qs[b + 1] of Q and ks[b] up to ks[b + 1] of K. qs, ks are [P], one more than there are sequences.

-- ---- forward ----

local lowest = -3e38 -- maxima start here and not at -inf, so that x - m is never -inf - -inf

-- Two parts of the keys as one.
local function merge(p, q)
  local m = max(p.m, q.m)
  local s, t = exp2(p.m - m), exp2(q.m - m)
  return {m = m, l = p.l * s + q.l * t, acc = p.acc * s + q.acc * t}
end

-- Rows `first` and on of head h; Q, O [M, D], K, V [N, D], L [M] are views of one head.
local function forward(c, score, scale, first, h, Q, K, V, O, L)
  local M, N, size = Q:size(0), K:size(0), {c.BN, c.D}
  local q, row = Q:tile({first, 0}, {c.BM, c.D}), first + N - M + iota(0, c.BM)
  local m, l, acc = full(f32, lowest, c.BM, 1), zeros(f32, c.BM, 1), zeros(f32, c.BM, c.D)
  local lo, hi = 0, N
  if c.causal then hi = min(hi, first + N - M + c.BM) end
  if c.window > 0 then lo = max(lo, first + N - M - c.window + 1) // c.BN * c.BN end
  for n in range(lo, hi, c.BN, {merge = merge}) do
    local col, x = n + iota(1, c.BN), dot(q, K:tile({n, 0}, size):T())
    x = score and score(x * scale, row, col, h) * log2e or x * (scale * log2e)
    local seen = col < N
    if c.causal then seen = seen and col <= row end
    if c.window > 0 then seen = seen and abs(row - col) < c.window end
    x = where(seen, x, -inf)
    local mx = max(m, rowmax(x))
    local p, r = exp2(x - mx), exp2(m - mx)
    m, l, acc = mx, l * r + rowsum(p), acc * r + dot(cast(p, c.T), V:tile({n, 0}, size))
  end
  O:store({first, 0}, cast(where(l > 0, acc / l, 0), c.T))
  if L then L:store({first}, (m / log2e + log(l)):reshape(c.BM)) end
end

local const = {T = {bf16, f16, f32}, D = {128, 64, any}, causal = {true, false}, window = {0, any}}
local tune = {BM = {128, 64, 32}, BN = {64, 128, 32}}

local function attention(name, score, oracle, cases)
  return kernel {
    name = name, const = const, tune = tune, cases = cases,
    args = {
      tensor("Q", "T", "B", "H", "M", "D"), tensor("K", "T", "B", "G", "N", "D"),
      tensor("V", "T", "B", "G", "N", "D"), scalar("scale", f32),
      out("O", "T", "B", "H", "M", "D"), optional(out("L", f32, "B", "H", "M")),
    },
    grid = function(d, c) return cdiv(d.M, c.BM), d.H, d.B end,
    body = function(a, d, c, i, h, b)
      local g, first = h * d.G // d.H, i * c.BM
      forward(c, score, a.scale, first, h, a.Q:at(b, h), a.K:at(b, g), a.V:at(b, g),
              a.O:at(b, h), a.L and a.L:at(b, h))
    end,
    oracle = function(t, d, c) return oracle(score, t, d, c) end,
  }
end

-- ---- packed sequences ----

-- Tile i of the tiles of all sequences: its sequence (none: one past the last) and place in it.
local function find(starts, count, size, i)
  local b, before, tiles = count, 0, 0
  for s in range(0, count) do
    local n = cdiv(starts:at(s + 1) - starts:at(s), size)
    if i >= tiles and i < tiles + n then b, before = s, tiles end
    tiles = tiles + n
  end
  return b, i - before
end

local function packed(score)
  return function(a, d, c, i, h)
    local b, tile = find(a.qs, d.P - 1, c.BM, i)
    local function part(x, starts, head)
      local lo = starts:at(b)
      return x:permute(1, 0, 2):at(head):slice({lo, 0}, {starts:at(b + 1) - lo, c.D})
    end
    local g, first = h * d.G // d.H, tile * c.BM
    local L = a.L and a.L:T():at(h):slice({a.qs:at(b)}, {a.qs:at(b + 1) - a.qs:at(b)})
    forward(c, score, a.scale, first, h, part(a.Q, a.qs, h), part(a.K, a.ks, g),
            part(a.V, a.ks, g), part(a.O, a.qs, h), L)
  end
end

-- ---- oracles ----

-- O and L of arrays as in the dense form.
local function reference(score, t, d, c)
  local row, col = iota(0, d.M) + (d.N - d.M), iota(1, d.N)
  local seen = c.causal and le(col, row) or full(f64, 1, d.M, d.N)
  if c.window > 0 then seen = seen * lt(abs(row - col), c.window) end
  local group = d.H // d.G * d.M -- heads that share keys are rows of one product
  local x = matmul(t.Q:reshape(d.B, d.G, group, d.D), t.K:T()) * t.scale
  x = x:reshape(d.B, d.H, d.M, d.N)
  if score then
    x = score(x, row:reshape(1, 1, d.M, 1), col:reshape(1, 1, 1, d.N),
              iota(0, d.H):reshape(1, d.H, 1, 1))
  end
  x = where(seen:reshape(1, 1, d.M, d.N), x, -inf)
  local m = max(amax(x, 3), lowest)
  local p = exp(x - m)
  local l = sum(p, 3)
  local o = matmul(rounded(p, c.T):reshape(d.B, d.G, group, d.N), t.V):reshape(d.B, d.H, d.M, d.D)
  return {O = o / where(l, l, 1), L = (m + log(l)):reshape(d.B, d.H, d.M)}
end

local function packed_reference(score, t, d, c)
  local o, l = {zeros(f64, 0, d.H, d.D)}, {zeros(f64, 0, d.H)}
  for s = 0, d.P - 2 do
    local q, k = t.qs:at(s), t.ks:at(s)
    local m, n = t.qs:at(s + 1) - q, t.ks:at(s + 1) - k
    local function part(x, lo, size, heads)
      return x:slice({lo, 0, 0}, {size, heads, d.D}):permute(1, 0, 2):reshape(1, heads, size, d.D)
    end
    local r = reference(score, {Q = part(t.Q, q, m, d.H), K = part(t.K, k, n, d.G),
                                V = part(t.V, k, n, d.G), scale = t.scale},
                        {B = 1, H = d.H, G = d.G, M = m, N = n, D = d.D}, c)
    o[#o + 1], l[#l + 1] = r.O:reshape(d.H, m, d.D):permute(1, 0, 2), r.L:reshape(d.H, m):T()
  end
  return {O = cat(0, table.unpack(o)), L = cat(0, table.unpack(l))}
end

-- count + 1 starts of sequences of random lengths, some empty, that are `total` together.
local function starts(rng, count, total)
  local t = {0}
  for s = 2, count do t[s] = rng:int(0, total) end
  table.sort(t)
  t[count + 1] = total
  return t
end

-- ---- kernels ----

local function attention_packed(name, score, cases)
  return kernel {
    name = name, const = const, tune = tune, cases = cases,
    args = {
      tensor("Q", "T", "M", "H", "D"), tensor("K", "T", "N", "G", "D"),
      tensor("V", "T", "N", "G", "D"), tensor("qs", s32, "P"), tensor("ks", s32, "P"),
      scalar("scale", f32), out("O", "T", "M", "H", "D"), optional(out("L", f32, "M", "H")),
    },
    grid = function(d, c) return d.M // c.BM + d.P - 1, d.H end,
    body = packed(score),
    inputs = function(d, rng)
      return {qs = starts(rng, d.P - 1, d.M), ks = starts(rng, d.P - 1, d.N)}
    end,
    oracle = function(t, d, c) return packed_reference(score, t, d, c) end,
  }
end

-- Score modifiers.
local function softcap(x) return tanh(x / 30) * 30 end
local function alibi(x, row, col, h) return x - cast(row - col, f32) * exp2(cast(-h, f32)) end

-- A case: B, H, G, M, N, D, then consts; small tiles, so that loops and tails run.
local function case(shape, const, more)
  local s = {}
  for i, dim in ipairs {"B", "H", "G", "M", "N", "D"} do s[dim] = shape[i] end
  local k = {shape = s, const = const, set = {BM = 32, BN = 32}, scalar = {scale = 0.25},
             seed = s.M + s.N + s.H}
  for key, value in pairs(more or {}) do k[key] = value end
  return k
end

local cases = {
  case({1, 2, 1, 100, 100, 64}, {}, {set = {}}),
  case({2, 3, 1, 40, 33, 16}, {}, {stride = {Q = {40 * 48, 16, 48, 1}}}), -- B, M, H, D in memory
  case({0, 2, 1, 3, 3, 16}, {}), case({1, 2, 1, 0, 5, 16}, {}),
  case({1, 2, 2, 5, 0, 16}, {}), -- no keys: 0 and -inf
  case({2, 1, 1, 70, 20, 16}, {}), -- causal, the first 50 queries see nothing
  case({1, 3, 1, 40, 90, 16}, {causal = false, window = 30}), -- and here the last ones see few
  case({1, 2, 2, 33, 150, 16}, {window = 20, T = f16}),
  case({2, 4, 2, 65, 47, 24}, {T = f32}, {layout = {Q = "col", V = "col"}}),
  case({1, 2, 1, 50, 50, 128}, {T = f16}, {absent = {"L"}, set = {BM = 64, BN = 32}}),
}
for _, m in ipairs {1, 63, 250, 384, 1000} do
  cases[#cases + 1] = case({1, 1, 1, m, m, 16}, {causal = m % 2 == 0})
  cases[#cases + 1] = case({1, 1, 1, m, 250, 16}, {causal = m % 2 == 1, window = m // 3})
end
for _, heads in ipairs {1, 2, 5, 8, 16} do
  cases[#cases + 1] = case({1, heads, 1, 7, 40, 16}, {})
end

return {
  attention = attention("attention", nil, reference, cases),
  attention_softcap = attention("attention_softcap", softcap, reference, {
    case({1, 2, 1, 40, 70, 16}, {}), case({1, 1, 1, 33, 33, 64}, {causal = false, T = f32}),
  }),
  attention_alibi = attention("attention_alibi", alibi, reference, {
    case({1, 4, 2, 40, 70, 16}, {}), case({1, 3, 3, 65, 33, 16}, {window = 9, T = f16}),
  }),
  attention_packed = attention_packed("attention_packed", nil, {
    {shape = {P = 4, H = 2, G = 1, M = 150, N = 150, D = 16}, set = {BM = 32, BN = 32},
     scalar = {scale = 0.25}},
    {shape = {P = 7, H = 4, G = 2, M = 90, N = 200, D = 16}, set = {BM = 16, BN = 32},
     const = {window = 12}, scalar = {scale = 0.25}, seed = 1},
    {shape = {P = 3, H = 1, G = 1, M = 40, N = 60, D = 64}, const = {T = f16, causal = false},
     scalar = {scale = 0.125}, absent = {"L"}, seed = 2},
    {shape = {P = 1, H = 1, G = 1, M = 0, N = 0, D = 16}, seed = 3},
    {shape = {P = 5, H = 2, G = 2, M = 30, N = 0, D = 16}, seed = 4},
  }),
}
