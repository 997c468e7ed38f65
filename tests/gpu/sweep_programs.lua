-- Programs that are neither a product nor attention as it is known, on the matrix unit of
-- warpgroups. Run with `--root .` from the source folder, on a GPU with that unit or `--on emu`.

local kernels = {}
local types = {T = {bf16, f16}}
local function cases(list)
  for i, c in ipairs(list) do c.seed = i end
  return list
end

-- ---- of rows of queries against keys ----

-- Shapes: M queries, N keys, tiles of BM and BN, one to three warpgroups.
local function keyed(more)
  local list = {
    {shape = {M = 128, N = 128, D = 64}, set = {BM = 128, BN = 64}, schedule = {warpgroups = 2}},
    {shape = {M = 200, N = 250, D = 128}, set = {BM = 128, BN = 64}, const = {D = 128},
     schedule = {warpgroups = 2}},
    {shape = {M = 63, N = 300, D = 64}, set = {BM = 64, BN = 128}, const = {T = f16},
     schedule = {warpgroups = 1}},
    {shape = {M = 250, N = 70, D = 64}, set = {BM = 192, BN = 64}, schedule = {warpgroups = 3}},
  }
  for _, c in ipairs(list) do
    c.scalar = {scale = 0.25}
    for k, v in pairs(more or {}) do c[k] = c[k] or v end
  end
  return cases(list)
end
local key_tune = {BM = {128, 64, 192}, BN = {64, 128}}
local key_const = {T = {bf16, f16}, D = {64, 128}}
local function rows(d, c) return cdiv(d.M, c.BM) end

-- O = sigmoid(Q K^T scale) V: no reductions between the two products.
kernels.sigmoid = kernel {
  name = "sigmoid", const = key_const, tune = key_tune, grid = rows, cases = keyed(),
  args = {
    tensor("Q", "T", "M", "D"), tensor("K", "T", "N", "D"), tensor("V", "T", "N", "D"),
    scalar("scale", f32), out("O", "T", "M", "D"),
  },
  body = function(a, d, c, i)
    local q, acc = a.Q:tile({i * c.BM, 0}, {c.BM, c.D}), zeros(f32, c.BM, c.D)
    for n in range(0, d.N, c.BN) do
      local x = dot(q, a.K:tile({n, 0}, {c.BN, c.D}):T()) * a.scale
      local p = where(n + iota(1, c.BN) < d.N, 1 / (1 + exp(-x)), 0)
      acc = acc + dot(cast(p, c.T), a.V:tile({n, 0}, {c.BN, c.D}))
    end
    a.O:store({i * c.BM, 0}, cast(acc, c.T))
  end,
}

-- Scores of two terms, Q K^T + P R^T, then softmax.
kernels.two_terms = kernel {
  name = "two_terms", const = key_const, tune = key_tune, grid = rows, cases = keyed(),
  args = {
    tensor("Q", "T", "M", "D"), tensor("K", "T", "N", "D"), tensor("P", "T", "M", "D"),
    tensor("R", "T", "N", "D"), tensor("V", "T", "N", "D"), scalar("scale", f32),
    out("O", "T", "M", "D"),
  },
  body = function(a, d, c, i)
    local size = {c.BN, c.D}
    local q, p = a.Q:tile({i * c.BM, 0}, {c.BM, c.D}), a.P:tile({i * c.BM, 0}, {c.BM, c.D})
    local m, l, acc = full(f32, -1e30, c.BM, 1), zeros(f32, c.BM, 1), zeros(f32, c.BM, c.D)
    for n in range(0, d.N, c.BN) do
      local x = dot(q, a.K:tile({n, 0}, size):T()) + dot(p, a.R:tile({n, 0}, size):T())
      x = where(n + iota(1, c.BN) < d.N, x * a.scale, -inf)
      local mx = max(m, rowmax(x))
      local e, r = exp(x - mx), exp(m - mx)
      m, l = mx, l * r + rowsum(e)
      acc = acc * r + dot(cast(e, c.T), a.V:tile({n, 0}, size))
    end
    a.O:store({i * c.BM, 0}, cast(acc / l, c.T))
  end,
}

-- Attention with queries that are scaled and rotated by a gate first: a left operand computed once,
-- outside of the loop that reads it.
kernels.gated_queries = kernel {
  name = "gated_queries", const = key_const, tune = key_tune, grid = rows, cases = keyed(),
  args = {
    tensor("Q", "T", "M", "D"), tensor("G", "T", "M", "D"), tensor("K", "T", "N", "D"),
    tensor("V", "T", "N", "D"), scalar("scale", f32), out("O", "T", "M", "D"),
  },
  body = function(a, d, c, i)
    local at, size = {i * c.BM, 0}, {c.BM, c.D}
    local q = cast(cast(a.Q:tile(at, size), f32) * cast(a.G:tile(at, size), f32) * a.scale, c.T)
    local acc = zeros(f32, c.BM, c.D)
    for n in range(0, d.N, c.BN) do
      local x = max(dot(q, a.K:tile({n, 0}, {c.BN, c.D}):T()), 0)
      acc = acc + dot(cast(x, c.T), a.V:tile({n, 0}, {c.BN, c.D}))
    end
    a.O:store({i * c.BM, 0}, cast(acc, c.T))
  end,
}

-- ---- decayed linear attention, a chunk of rows at a time ----

-- S is the state, [D, D]: O of a chunk is what its queries find in S, and in the chunk up to
-- themselves; then S decays and takes the chunk's keys and values. K is read as a right operand
-- and, transposed and scaled, as a left one; S is a computed right one.
kernels.decayed = kernel {
  name = "decayed", const = {T = {bf16, f16}, D = {64}}, tune = {BM = {64, 128}},
  grid = function(d) return d.H end,
  cases = cases {
    {shape = {H = 2, M = 128, D = 64}, set = {BM = 64}, schedule = {warpgroups = 1}},
    {shape = {H = 1, M = 200, D = 64}, set = {BM = 64}, const = {T = f16},
     schedule = {warpgroups = 1}},
    {shape = {H = 3, M = 60, D = 64}, set = {BM = 64}, schedule = {warpgroups = 1, stages = 1}},
  },
  args = {
    tensor("Q", "T", "H", "M", "D"), tensor("K", "T", "H", "M", "D"),
    tensor("V", "T", "H", "M", "D"), tensor("g", f32, "H"), out("O", "T", "H", "M", "D"),
  },
  inputs = function(s, rng) return {g = rng:int(1, 3, s.H)} end,
  body = function(a, d, c, h)
    local Q, K, V, O = a.Q:at(h), a.K:at(h), a.V:at(h), a.O:at(h)
    local size, rate = {c.BM, c.D}, a.g:at(h) * (1 / 64)
    local S, row, col = zeros(f32, c.D, c.D), iota(0, c.BM), iota(1, c.BM)
    local from_start = exp2(-rate * cast(row + 1, f32))
    local near = where(row >= col, from_start * exp2(rate * cast(col + 1, f32)), 0)
    local to_end = exp2(-rate * cast(c.BM - 1 - row, f32))
    for n in range(0, d.M, c.BM) do
      local q, k, v = Q:tile({n, 0}, size), K:tile({n, 0}, size), V:tile({n, 0}, size)
        local o = dot(cast(dot(q, k:T()) * near, c.T), v)
      local far = cast(cast(q, f32) * from_start, c.T)
      o = o + dot(far, cast(S, c.T))
      O:store({n, 0}, cast(o, c.T))
      S = S * exp2(-rate * c.BM) + dot(cast(cast(k, f32) * to_end, c.T):T(), v)
    end
  end,
}

-- ---- of products ----

local tune = {BM = {128, 64}, BN = {64, 128}, BK = {64, 32}}
local function grid(d, c) return cdiv(d.M, c.BM), cdiv(d.N, c.BN) end
local plain = {
  {shape = {M = 136, N = 72, K = 200}, set = {BM = 128, BN = 64, BK = 64},
   schedule = {warpgroups = 2}},
  {shape = {M = 72, N = 136, K = 40}, set = {BM = 64, BN = 128, BK = 32}, const = {T = f16},
   schedule = {warpgroups = 1}},
}

-- silu(A B^T) (A G^T): two products of one left operand.
kernels.swiglu = kernel {
  name = "swiglu", const = types, tune = tune, grid = grid, cases = cases(plain),
  args = {
    tensor("A", "T", "M", "K"), tensor("B", "T", "N", "K"), tensor("G", "T", "N", "K"),
    out("C", "T", "M", "N"),
  },
  body = function(a, d, c, i, j)
    local x, y = zeros(f32, c.BM, c.BN), zeros(f32, c.BM, c.BN)
    for k in range(0, d.K, c.BK) do
      local t = a.A:tile({i * c.BM, k}, {c.BM, c.BK})
      x = x + dot(t, a.B:tile({j * c.BN, k}, {c.BN, c.BK}):T())
      y = y + dot(t, a.G:tile({j * c.BN, k}, {c.BN, c.BK}):T())
    end
    a.C:store({i * c.BM, j * c.BN}, cast(x / (1 + exp(-x)) * y, c.T))
  end,
}

-- One operand as it was loaded and, squared, once more: two products whose left operands are one
-- load.
kernels.moments = kernel {
  name = "moments", const = types, tune = tune, grid = grid, cases = cases(plain),
  args = {
    tensor("A", "T", "M", "K"), tensor("B", "T", "N", "K"), tensor("G", "T", "N", "K"),
    out("C", "T", "M", "N"),
  },
  body = function(a, d, c, i, j)
    local x, y = zeros(f32, c.BM, c.BN), zeros(f32, c.BM, c.BN)
    for k in range(0, d.K, c.BK) do
      local t = a.A:tile({i * c.BM, k}, {c.BM, c.BK})
      x = x + dot(t, a.B:tile({j * c.BN, k}, {c.BN, c.BK}):T())
      y = y + dot(max(t, 0), a.G:tile({j * c.BN, k}, {c.BN, c.BK}):T())
    end
    a.C:store({i * c.BM, j * c.BN}, cast(x - y, c.T))
  end,
}

-- A product that is waited for, between two that stay in flight.
kernels.between = kernel {
  name = "between", const = types, tune = tune, grid = grid, cases = cases(plain),
  args = {
    tensor("A", "T", "M", "K"), tensor("B", "T", "N", "K"), tensor("G", "T", "N", "K"),
    tensor("F", "T", "N", "K"), out("C", "T", "M", "N"),
  },
  body = function(a, d, c, i, j)
    local x, y, s = zeros(f32, c.BM, c.BN), zeros(f32, c.BM, c.BN), zeros(f32, c.BM, 1)
    for k in range(0, d.K, c.BK) do
      local t, at, size = a.A:tile({i * c.BM, k}, {c.BM, c.BK}), {j * c.BN, k}, {c.BN, c.BK}
      x = x + dot(t, a.B:tile(at, size):T())
      s = s + rowsum(dot(t, a.G:tile(at, size):T()))
      y = y + dot(t, a.F:tile(at, size):T())
    end
    a.C:store({i * c.BM, j * c.BN}, cast(x - y + s, c.T))
  end,
}

-- Weights of 8 bits with a scale a column, widened where they are needed: the right operand is
-- computed, N adjacent or not.
kernels.weights = kernel {
  name = "weights", const = {T = {bf16, f16}, Q = {s8, u8, e4m3}}, tune = tune, grid = grid,
  cases = cases {
    {shape = {M = 136, N = 80, K = 208}, set = {BM = 128, BN = 64, BK = 64},
     schedule = {warpgroups = 2}},
    {shape = {M = 72, N = 144, K = 48}, set = {BM = 64, BN = 128, BK = 32},
     const = {T = f16, Q = u8}, schedule = {warpgroups = 1}},
    {shape = {M = 136, N = 64, K = 128}, set = {BM = 128, BN = 64, BK = 64}, const = {Q = e4m3},
     layout = {B = "col"}, schedule = {warpgroups = 2}},
  },
  args = {
    tensor("A", "T", "M", "K"), tensor("B", "Q", "N", "K"), tensor("s", f32, "N"),
    out("C", "T", "M", "N"),
  },
  body = function(a, d, c, i, j)
    local x, s = zeros(f32, c.BM, c.BN), a.s:tile({j * c.BN}, {c.BN}):row()
    for k in range(0, d.K, c.BK) do
      local w = cast(a.B:tile({j * c.BN, k}, {c.BN, c.BK}):T(), f32) * s
      x = x + dot(a.A:tile({i * c.BM, k}, {c.BM, c.BK}), cast(w, c.T))
    end
    a.C:store({i * c.BM, j * c.BN}, cast(x, c.T))
  end,
}

return kernels
