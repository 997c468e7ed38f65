-- Rotary embedding, in place: Q is [M, H, D], K is [M, G, D]; of token m every pair (x, y) of
-- numbers turns by the angle of position Pos[m]: x' = x cos - y sin, y' = y cos + x sin. Pos is s32
-- [M], Cos and Sin are f32 tables [P, D/2]; outside of them a token becomes 0.
--
-- A pair is (x[i], x[i + D/2]), halves, or (x[2i], x[2i + 1]), interleaved. Either is a view of Q:
-- the first and the second of all pairs.

-- The parts 0 and 1 of one head, [M, D/2] each.
local function halves(x, c, h)
  local pairs = x:permute(1, 0, 2):at(h):reshape(x:size(0), 2, c.D // 2):permute(1, 0, 2)
  return pairs:at(0), pairs:at(1)
end

local function interleaved(x, c, h)
  local pairs = x:permute(1, 0, 2):at(h):reshape(x:size(0), c.D // 2, 2):permute(2, 0, 1)
  return pairs:at(0), pairs:at(1)
end

local function rope(name, parts, reference)
  return kernel {
    name = name,
    const = { T = {bf16, f16, f32}, D = {128, 64, any} },
    args = {
      inout("Q", "T", "M", "H", "D"), inout("K", "T", "M", "G", "D"), tensor("Pos", s32, "M"),
      tensor("Cos", f32, "P", "D/2"), tensor("Sin", f32, "P", "D/2"),
    },
    tune = { BM = {32, 16, 64} },
    grid = function(d, c) return cdiv(d.M, c.BM), d.H + d.G end,
    body = function(a, d, c, i, h)
      local at, size = {i * c.BM, 0}, {c.BM, c.D // 2}
      local angle = {a.Pos:tile({i * c.BM}, {c.BM}):col(), iota(1, c.D // 2)}
      local cos, sin = a.Cos:gather(angle), a.Sin:gather(angle)
      local function turn(x, head)
        local p, q = parts(x, c, head)
        local x, y = cast(p:tile(at, size), f32), cast(q:tile(at, size), f32)
        p:store(at, cast(x * cos - y * sin, c.T))
        q:store(at, cast(y * cos + x * sin, c.T))
      end
      if h < d.H then turn(a.Q, h) else turn(a.K, h - d.H) end
    end,
    inputs = function(d, rng, c)
      local angle = iota(0, d.P) * exp2(iota(1, c.D // 2) * (-26 / c.D))
      return {Pos = rng:int(0, d.P, d.M), Cos = cos(angle), Sin = sin(angle)}
    end,
    oracle = function(t, d, c)
      local cosines, sines = {zeros(f64, 0, c.D // 2)}, {zeros(f64, 0, c.D // 2)}
      for m = 0, d.M - 1 do
        local pos, none = t.Pos:at(m), zeros(f64, 1, c.D // 2)
        cosines[m + 2] = pos < d.P and t.Cos:slice({pos, 0}, {1, c.D // 2}) or none
        sines[m + 2] = pos < d.P and t.Sin:slice({pos, 0}, {1, c.D // 2}) or none
      end
      local cos = cat(0, table.unpack(cosines)):reshape(d.M, 1, c.D // 2)
      local sin = cat(0, table.unpack(sines)):reshape(d.M, 1, c.D // 2)
      return reference(t.Q, cos, sin), reference(t.K, cos, sin)
    end,
    cases = {
      {shape = {M = 40, H = 3, G = 1, P = 50, D = 64}},
      {shape = {M = 33, H = 2, G = 2, P = 9, D = 10}, const = {T = f32}, seed = 1},
      {shape = {M = 5, H = 4, G = 2, P = 100, D = 128}, const = {T = f16},
       layout = {Q = "col"}, seed = 2},
      {shape = {M = 1, H = 1, G = 0, P = 1, D = 2}, seed = 3},
      {shape = {M = 0, H = 1, G = 1, P = 4, D = 8}, seed = 4},
    },
  }
end

return {
  rope = rope("rope", halves, function(x, cos, sin)
    local m, h, n = x.shape[1], x.shape[2], x.shape[3] // 2
    local p, q = x:slice({0, 0, 0}, {m, h, n}), x:slice({0, 0, n}, {m, h, n})
    return cat(2, p * cos - q * sin, q * cos + p * sin)
  end),
  rope_interleaved = rope("rope_interleaved", interleaved, function(x, cos, sin)
    local m, h, n = x.shape[1], x.shape[2], x.shape[3] // 2
    local pairs = x:reshape(m, h, n, 2)
    local p = pairs:slice({0, 0, 0, 0}, {m, h, n, 1}):reshape(m, h, n)
    local q = pairs:slice({0, 0, 0, 1}, {m, h, n, 1}):reshape(m, h, n)
    local x, y = (p * cos - q * sin):reshape(m, h, n, 1), (q * cos + p * sin):reshape(m, h, n, 1)
    return cat(3, x, y):reshape(m, h, 2 * n)
  end),
}
