-- Sweeps of what goes through views, parts, indices, atomics and scratch: odd shapes, strides,
-- offsets and dtypes.
-- kiln test tests/gpu/sweep_views.lua --root . --on gpu

local attention = require "kernels_ref.attention"
local embedding = require "kernels_ref.embedding"
local histogram = require "kernels_ref.histogram"
local transpose = require "kernels_ref.transpose"
local grouped = require "kernels_ref.gemm_grouped"

local types = {bf16, f16, f32, f64, s8, u8, s32, s64}

-- Cases of every dtype over shapes and layouts.
local function each(shapes, layouts, list)
  local cases = {}
  for _, T in ipairs(list or types) do
    for _, shape in ipairs(shapes) do
      for _, layout in ipairs(layouts or {{}}) do
        cases[#cases + 1] = {shape = shape, const = {T = T}, layout = layout, seed = #cases + 1}
      end
    end
  end
  return cases
end

-- Y[k, m, n] of X [M, N, K]: a permuted view, at one of its dims.
local permuted = kernel {
  name = "permuted",
  const = { T = types },
  args = { tensor("X", "T", "M", "N", "K"), out("Y", "T", "K", "M", "N") },
  grid = function(d) return d.K, cdiv(d.M, 16), cdiv(d.N, 32) end,
  body = function(a, d, c, k, i, j)
    a.Y:at(k):store({i * 16, j * 32}, a.X:permute(2, 0, 1):at(k):tile({i * 16, j * 32}, {16, 32}))
  end,
  oracle = function(t) return t.X:permute(2, 0, 1) end,
  cases = each({{M = 33, N = 40, K = 5}, {M = 16, N = 32, K = 16}, {M = 1, N = 7, K = 9}},
               {{}, {X = "col"}, {Y = "col"}}),
}

-- A window of X that reaches outside on every side; what lies outside is 3.
local window = kernel {
  name = "window",
  const = { T = types },
  args = { tensor("X", "T", "M", "N"), out("Y", "T", "M + 4", "N + 6") },
  grid = function(d) return cdiv(d.M + 4, 8), cdiv(d.N + 6, 64) end,
  body = function(a, d, c, i, j)
    local w = a.X:slice({-2, -3}, {d.M + 4, d.N + 6})
    a.Y:store({i * 8, j * 64}, w:tile({i * 8, j * 64}, {8, 64}, {pad = 3}))
  end,
  cases = each({{M = 30, N = 61}, {M = 8, N = 64}, {M = 1, N = 1}}, {{}, {X = "col"}}),
}

-- Rows split into heads and joined again: views that are reshaped both ways.
local heads = kernel {
  name = "heads",
  const = { T = types },
  args = { tensor("X", "T", "M", "N"), out("Y", "T", "M", "N") },
  grid = function(d) return cdiv(d.M, 8), d.N // 24 end,
  body = function(a, d, c, i, h)
    local x = a.X:reshape(d.M, d.N // 24, 24):permute(1, 0, 2):at(h)
    local y = a.Y:reshape(d.M, d.N // 24, 24):permute(1, 0, 2):at(h)
    y:store({i * 8, 0}, x:tile({i * 8, 0}, {8, 24}))
  end,
  oracle = function(t) return t.X + 0 end,
  cases = each({{M = 19, N = 96}, {M = 8, N = 24}, {M = 3, N = 480}}),
}

-- Block scales, one for 5 x 12 elements.
local scaled = kernel {
  name = "scaled",
  const = { T = {bf16, f16, f32} },
  args = { tensor("X", "T", "M", "N"), tensor("S", f32, "cdiv(M, 5)", "cdiv(N, 12)"),
           out("Y", f32, "M", "N") },
  grid = function(d) return cdiv(d.M, 8), cdiv(d.N, 64) end,
  body = function(a, d, c, i, j)
    local s = a.S:every(0, 5):every(1, 12):tile({i * 8, j * 64}, {8, 64})
    a.Y:store({i * 8, j * 64}, cast(a.X:tile({i * 8, j * 64}, {8, 64}), f32) * s)
  end,
  cases = each({{M = 40, N = 120}, {M = 33, N = 61}}, {{}, {S = "col"}}, {bf16, f16, f32}),
}

-- Y[n] = X[I[n], J[n]] and rows of X by number: gathers of one element and of rows.
local picked = kernel {
  name = "picked",
  const = { T = types },
  args = { tensor("X", "T", "M", "N"), tensor("I", s32, "P"), tensor("J", s32, "P"),
           out("Y", "T", "P"), out("Z", "T", "P", "N") },
  grid = function(d) return cdiv(d.P, 32), cdiv(d.N, 64) end,
  body = function(a, d, c, p, j)
    local i, k = a.I:tile({p * 32}, {32}), a.J:tile({p * 32}, {32})
    if j == 0 then a.Y:store({p * 32}, a.X:gather({i, k})) end
    a.Z:store({p * 32, j * 64}, a.X:gather({i:col(), j * 64 + iota(1, 64)}))
  end,
  inputs = function(s, rng)
    return {I = rng:int(-2, s.M + 1, s.P), J = rng:int(-2, s.N + 1, s.P)}
  end,
  cases = each({{M = 50, N = 70, P = 45}, {M = 64, N = 128, P = 64}, {M = 1, N = 1, P = 3}},
               {{}, {X = "col"}}),
}

-- Rows to where I says: a permutation.
local sent = kernel {
  name = "sent",
  const = { T = types },
  args = { tensor("X", "T", "M", "N"), tensor("I", s32, "M"), inout("Y", "T", "M", "N") },
  grid = function(d) return cdiv(d.M, 16), cdiv(d.N, 64) end,
  body = function(a, d, c, i, j)
    a.Y:scatter({a.I:tile({i * 16}, {16}, {pad = -1}):col(), j * 64 + iota(1, 64)},
                a.X:tile({i * 16, j * 64}, {16, 64}))
  end,
  inputs = function(s) return {I = s.M - 1 - iota(0, s.M):reshape(s.M)} end,
  cases = each({{M = 50, N = 70}, {M = 16, N = 64}, {M = 7, N = 3}}, {{}, {Y = "col"}}),
}

-- One kernel per kind of atomic and dtype: many to few elements, and each to its own with the old
-- value kept.
local function atomic(T, kind)
  return kernel {
    name = "atomic_" .. kind,
    args = { tensor("X", T, "N"), tensor("I", s32, "N"), inout("H", T, "B"), inout("G", T, "N"),
             out("O", T, "N") },
    grid = function(d) return cdiv(d.N, 256) end,
    body = function(a, d, c, i)
      local at, x = i * 256, a.X:tile({i * 256}, {256})
      if kind ~= "exchange" then
        a.H["atomic_" .. kind](a.H, {a.I:tile({at}, {256})}, x)
      end
      a.O:store({at}, a.G["atomic_" .. kind](a.G, {at + iota(0, 256):reshape(256)}, x))
    end,
    inputs = function(s, rng) -- whole numbers: the order of sums does not show
      return {I = rng:int(-1, s.B, s.N), X = rng:int(-1, 1, s.N), H = rng:int(-2, 2, s.B),
              G = rng:int(-2, 2, s.N)}
    end,
    cases = {{shape = {N = 1000, B = 7}, seed = 1}, {shape = {N = 1, B = 1}, seed = 2},
             {shape = {N = 4096, B = 300}, seed = 3}},
  }
end

-- Through scratch, written one way and read another; a count that starts at zero.
local scratched = kernel {
  name = "scratched",
  const = { T = types },
  args = { tensor("X", "T", "M", "N"), scratch("W", "T", "M", "N"),
           scratch("C", s32, "M", {zero = true}), out("Y", "T", "M", "N"), out("Z", s32, "M") },
  grid = function(d) return cdiv(d.M, 16) end,
  body = function(a, d, c, i)
    a.W:store({i * 16, 0}, a.X:tile({i * 16, 0}, {16, 64}))
    a.C:atomic_add({i * 16 + iota(0, 16):reshape(16)}, 1)
    a.Y:store({i * 16, 0}, a.W:T():tile({0, i * 16}, {64, 16}):T())
    a.Z:store({i * 16}, a.C:tile({i * 16}, {16}))
  end,
  cases = each({{M = 40, N = 64}, {M = 33, N = 51}}),
}

-- Parts of tiles put together in another order.
local swapped = kernel {
  name = "swapped",
  const = { T = types },
  args = { tensor("X", "T", "M", "N"), out("Y", "T", "M", "N") },
  grid = function(d) return cdiv(d.M, 16), cdiv(d.N, 48) end,
  body = function(a, d, c, i, j)
    local x = a.X:tile({i * 16, j * 48}, {16, 48})
    local left, right = x:slice({0, 0}, {16, 20}), x:slice({0, 20}, {16, 28})
    local y = cat(0, x:slice({3, 0}, {13, 48}), x:slice({0, 0}, {3, 48}))
    a.Y:store({i * 16, j * 48}, cat(1, right, left) + y)
  end,
  cases = each({{M = 33, N = 100}, {M = 16, N = 48}}, {{}, {X = "col"}}),
}

local out_ = {
  permuted = permuted, window = window, heads = heads, scaled = scaled, picked = picked,
  sent = sent, scratched = scratched, swapped = swapped,
  attention = attention.attention, attention_packed = attention.attention_packed,
  embedding = embedding.embedding, embedding_backward = embedding.embedding_backward,
  histogram = histogram.histogram, histogram_few = histogram.histogram_few,
}
for name, k in pairs(transpose) do out_["transpose_" .. name] = k end
out_.gemm_grouped = grouped
for _, x in ipairs {
  {"s32", s32, {"add", "min", "max", "and", "or", "xor", "exchange"}},
  {"s64", s64, {"add", "min", "max", "and", "or", "xor", "exchange"}},
  {"f32", f32, {"add", "min", "max", "exchange"}}, {"f64", f64, {"add", "exchange"}},
  {"f16", f16, {"add"}}, {"bf16", bf16, {"add"}},
} do
  for _, kind in ipairs(x[3]) do out_["atomic_" .. kind .. "_" .. x[1]] = atomic(x[2], kind) end
end
return out_
