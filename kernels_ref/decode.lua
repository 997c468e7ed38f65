-- Attention of one new query per sequence over paged keys and values. Q, O are [B, H, D]; K, V are
-- pools of pages [N, P, G, D] of P keys each; key j of sequence b is row j % P of page
-- Table[b, j // P]; it has Len[b] keys. Table [B, X] and Len [B] are s32. R query heads share a
-- head of K and V: H = G * R. L [B, H] is the log of the sum of exponentials; without keys O is 0,
-- L -inf.
--
-- decode does all of a sequence in one program. Few long sequences leave the GPU idle; there
-- decode_part gives the result of each of S splits, f32 [S, B, H, D] and [S, B, H], and
-- decode_combine their weighted mean. These are two launches, because no program may read what
-- another one of the same launch writes.

local lowest = -3e38 -- where maxima start: never -inf, so that x - m is never -inf - -inf

-- Two parts of the keys as one.
local function merge(p, q)
  local m = max(p.m, q.m)
  local s, t = exp2(p.m - m), exp2(q.m - m)
  return {m = m, l = p.l * s + q.l * t, acc = p.acc * s + q.acc * t}
end

-- Group g of sequence b over the keys lo to hi: output (R, D) and log-sum-exp (R, 1), in f32.
local function attend(a, c, b, g, lo, hi)
  local q = a.Q:at(b):reshape(a.K:size(2), c.R, c.D):at(g):tile({0, 0}, {c.R, c.D})
  local m, l = full(f32, lowest, c.R, 1), zeros(f32, c.R, 1)
  local acc, dim = zeros(f32, c.R, c.D), iota(1, c.D)
  for n in range(lo, hi, c.BN, {merge = merge}) do
    local key = n + iota(0, c.BN)
    local page = where(key < hi, a.Table:gather({b, key // c.P}), -1) -- no page: 0
    local k, v = a.K:gather({page, key % c.P, g, dim}), a.V:gather({page, key % c.P, g, dim})
    local x = where(n + iota(1, c.BN) < hi, dot(q, k:T()) * (a.scale * log2e), -inf)
    local mx = max(m, rowmax(x))
    local p, r = exp2(x - mx), exp2(m - mx)
    m, l, acc = mx, l * r + rowsum(p), acc * r + dot(cast(p, c.T), v)
  end
  return where(l > 0, acc / l, 0), m / log2e + log(l)
end

local const = { T = {bf16, f16, f32}, D = {128, 64, any}, P = {16, any}, R = {8, any} }
local tune = { BN = {64, 32, 128} }

local inputs = {
  tensor("Q", "T", "B", "G*R", "D"), tensor("K", "T", "N", "P", "G", "D"),
  tensor("V", "T", "N", "P", "G", "D"), tensor("Table", s32, "B", "X"), tensor("Len", s32, "B"),
  scalar("scale", f32),
}

local function args(...)
  local list = table.move(inputs, 1, #inputs, 1, {})
  return table.move({...}, 1, select("#", ...), #list + 1, list)
end

-- Sequences of any length; what a table says after a sequence's end means nothing.
local function pages(d, rng, c)
  local len, at = {}, {}
  for b = 1, d.B do
    len[b] = b % 3 == 2 and 0 or rng:int(1, d.X * c.P)
    at[b] = {}
    for x = 1, d.X do
      at[b][x] = (x - 1) * c.P < len[b] and rng:int(0, d.N - 1) or 1000000
    end
  end
  return {Len = d.B > 0 and len or zeros(f64, 0), Table = d.B > 0 and at or zeros(f64, 0, d.X)}
end

-- Keys lo to hi of sequence b as heads: [G, hi - lo, D].
local function keys(pool, t, c, b, lo, hi)
  local parts, G = {}, pool.shape[3]
  for x = 0, cdiv(hi, c.P) - 1 do
    parts[x + 1] = pool:slice({t.Table:at(b, x), 0, 0, 0}, {1, c.P, G, c.D}):reshape(c.P, G, c.D)
  end
  parts[#parts + 1] = zeros(f64, 0, G, c.D)
  return cat(0, table.unpack(parts)):slice({lo, 0, 0}, {hi - lo, G, c.D}):permute(1, 0, 2)
end

-- Output [H, D] and log-sum-exp [H] of sequence b over the keys lo to hi.
local function reference(t, d, c, b, lo, hi)
  local q = t.Q:slice({b, 0, 0}, {1, d.G * c.R, c.D}):reshape(d.G, c.R, c.D)
  local x = matmul(q, keys(t.K, t, c, b, lo, hi):T()) * t.scale
  local m = max(amax(x, 2), lowest)
  local p = exp(x - m)
  local l = sum(p, 2)
  local o = matmul(rounded(p, c.T), keys(t.V, t, c, b, lo, hi)) / where(l, l, 1)
  return o:reshape(1, d.G * c.R, c.D), (m + log(l)):reshape(1, d.G * c.R)
end

-- The first and the last key of split s of n keys in S splits, in whole pages.
local function split(n, s, S, P)
  local size = cdiv(cdiv(n, P), S) * P
  return min(s * size, n), min((s + 1) * size, n)
end


local decode = kernel {
  name = "decode",
  const = const, tune = tune, inputs = pages,
  args = args(out("O", "T", "B", "G*R", "D"), optional(out("L", f32, "B", "G*R"))),
  grid = function(d, c) return d.G, d.B end,
  body = function(a, d, c, g, b)
    local o, l = attend(a, c, b, g, 0, a.Len:at(b))
    a.O:at(b):store({g * c.R, 0}, cast(o, c.T))
    if a.L then a.L:at(b):store({g * c.R}, l:reshape(c.R)) end
  end,
  oracle = function(t, d, c)
    local o, l = {zeros(f64, 0, d.G * c.R, c.D)}, {zeros(f64, 0, d.G * c.R)}
    for b = 0, d.B - 1 do o[b + 2], l[b + 2] = reference(t, d, c, b, 0, t.Len:at(b)) end
    return {O = cat(0, table.unpack(o)), L = cat(0, table.unpack(l))}
  end,
  cases = {
    {shape = {B = 3, G = 2, N = 20, X = 6, D = 64}, scalar = {scale = 0.125}},
    {shape = {B = 4, G = 1, N = 9, X = 5, D = 16}, const = {R = 1, P = 7, T = f16}, set = {BN = 32},
     scalar = {scale = 0.25}, seed = 1},
    {shape = {B = 2, G = 3, N = 40, X = 30, D = 16}, const = {R = 5, P = 1, T = f32},
     set = {BN = 16}, scalar = {scale = 0.25}, absent = {"L"}, seed = 2},
    {shape = {B = 1, G = 2, N = 8, X = 3, D = 128}, const = {R = 4, P = 64}, layout = {K = "col"},
     scalar = {scale = 0.09}, seed = 3},
    {shape = {B = 0, G = 2, N = 8, X = 3, D = 16}},
  },
}

local part = kernel {
  name = "decode_part",
  const = const, tune = tune, inputs = pages,
  args = args(out("O", f32, "S", "B", "G*R", "D"), out("L", f32, "S", "B", "G*R")),
  grid = function(d, c) return d.S, d.G, d.B end,
  body = function(a, d, c, s, g, b)
    local o, l = attend(a, c, b, g, split(a.Len:at(b), s, d.S, c.P))
    a.O:at(s, b):store({g * c.R, 0}, o)
    a.L:at(s, b):store({g * c.R}, l:reshape(c.R))
  end,
  oracle = function(t, d, c)
    local H = d.G * c.R
    local o, l = {zeros(f64, 0, H, c.D)}, {zeros(f64, 0, H)}
    for s = 0, d.S - 1 do
      for b = 0, d.B - 1 do
        local lo, hi = split(t.Len:at(b), s, d.S, c.P)
        o[#o + 1], l[#l + 1] = reference(t, d, c, b, lo, hi)
      end
    end
    return cat(0, table.unpack(o)):reshape(d.S, d.B, H, c.D),
           cat(0, table.unpack(l)):reshape(d.S, d.B, H)
  end,
  cases = {
    {shape = {S = 3, B = 3, G = 2, N = 20, X = 6, D = 64}, scalar = {scale = 0.125}},
    {shape = {S = 8, B = 2, G = 1, N = 9, X = 5, D = 16}, const = {R = 2, P = 7, T = f32},
     set = {BN = 16}, scalar = {scale = 0.25}, seed = 1},
    {shape = {S = 1, B = 1, G = 2, N = 4, X = 2, D = 16}, const = {R = 3, T = f16},
     scalar = {scale = 0.25}, seed = 2},
  },
}

-- O [B, H, D] and L [B, H] of the splits' OS [S, B, H, D] and LS [S, B, H]; S up to BS.
local combine = kernel {
  name = "decode_combine",
  const = { T = {bf16, f16, f32}, D = {128, 64, any} },
  args = {
    tensor("OS", f32, "S", "B", "H", "D"), tensor("LS", f32, "S", "B", "H"),
    out("O", "T", "B", "H", "D"), optional(out("L", f32, "B", "H")),
  },
  tune = { BS = {16, 32, 8} },
  grid = function(d, c) return d.H, d.B end,
  body = function(a, d, c, h, b)
    local OS, LS = a.OS:permute(1, 2, 0, 3):at(b, h), a.LS:permute(1, 2, 0):at(b, h)
    local m, l, acc = f32(lowest), f32(0), zeros(f32, 1, c.D)
    for s in range(0, d.S, c.BS) do
      local x = LS:tile({s}, {c.BS}, {pad = -inf}):col()
      local mx = max(m, max(x))
      local w, r = exp(x - mx), exp(m - mx)
      m, l, acc = mx, l * r + sum(w), acc * r + colsum(OS:tile({s, 0}, {c.BS, c.D}) * w)
    end
    a.O:at(b, h):store({0}, cast(where(l > 0, acc / l, 0), c.T):reshape(c.D))
    if a.L then a.L:at(b):store({h}, m + log(l)) end
  end,
  inputs = function(d, rng)
    local l = rng:uniform(-3, 3, d.S, d.B, d.H)
    return {LS = where(lt(rng:uniform(0, 1, d.S, d.B, d.H), 0.3), -inf, l)}
  end,
  oracle = function(t, d)
    local m = max(amax(t.LS, 0), lowest)
    local w = exp(t.LS - m)
    local l = sum(w, 0)
    local o = sum(t.OS * (w / where(l, l, 1)):reshape(d.S, d.B, d.H, 1), 0)
    return {O = o:reshape(d.B, d.H, d.D), L = (m + log(l)):reshape(d.B, d.H)}
  end,
  cases = {
    {shape = {S = 5, B = 3, H = 4, D = 64}}, {shape = {S = 40, B = 2, H = 3, D = 128}, seed = 1},
    {shape = {S = 1, B = 5, H = 8, D = 16}, const = {T = f32}, absent = {"L"}, seed = 2},
    {shape = {S = 17, B = 1, H = 1, D = 10}, const = {T = f16}, layout = {OS = "col"}, seed = 3},
    {shape = {S = 0, B = 1, H = 2, D = 16}},
  },
}

return { decode = decode, decode_part = part, decode_combine = combine }
