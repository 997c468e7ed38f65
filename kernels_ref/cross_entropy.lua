-- Cross-entropy of logits X [M, V] and labels Y [M] (s32): Loss[m] = Lse[m] - X[m, Y[m]], with
-- Lse[m] = log(sum(exp(X[m]))); Loss and Lse are f32 [M]. A program walks along V, which may be
-- large, with the maximum and the sum of what it has seen. A row whose label is not in [0, V), as
-- -100, is left out: its loss and gradient are 0.
--
-- Backward: DX[m, v] = (exp(X[m, v] - Lse[m]) - [v = Y[m]]) * DLoss[m], for f32 DLoss [M].

local T = {bf16, f16, f32}
local lowest = -3e38 -- where maxima start: never -inf, so that x - m is never -inf - -inf

-- Two parts of a row as one.
local function merge(p, q)
  local m = max(p.m, q.m)
  return {m = m, l = p.l * exp(p.m - m) + q.l * exp(q.m - m)}
end

local forward = kernel {
  name = "cross_entropy",
  const = { T = T },
  args = { tensor("X", "T", "M", "V"), tensor("Y", s32, "M"), out("Loss", f32, "M"),
           out("Lse", f32, "M") },
  tune = { BM = {1, 2, 4}, BV = {4096, 1024, 8192} },
  grid = function(d, c) return cdiv(d.M, c.BM) end,
  body = function(a, d, c, i)
    local m, l = full(f32, lowest, c.BM, 1), zeros(f32, c.BM, 1)
    for v in range(0, d.V, c.BV, {merge = merge}) do
      local x = cast(a.X:tile({i * c.BM, v}, {c.BM, c.BV}, {pad = -inf}), f32)
      local mx = max(m, rowmax(x))
      l, m = l * exp(m - mx) + rowsum(exp(x - mx)), mx
    end
    local lse = m + log(l)
    local label = a.Y:tile({i * c.BM}, {c.BM}, {pad = -1}):col()
    local x = cast(a.X:gather({i * c.BM + iota(0, c.BM), label}), f32)
    local loss = where(label >= 0 and cast(label, index) < d.V, lse - x, 0)
    a.Loss:store({i * c.BM}, loss:reshape(c.BM))
    a.Lse:store({i * c.BM}, lse:reshape(c.BM))
  end,
  inputs = function(d, rng) return {Y = rng:int(-1, d.V, d.M)} end,
  oracle = function(t, d)
    local m = max(amax(t.X, 1), lowest)
    local lse = m + log(sum(exp(t.X - m), 1))
    local hot = eq(iota(1, d.V), t.Y:col())
    local loss = (lse - sum(where(hot, t.X, 0), 1)) * amax(cat(1, hot, zeros(f64, d.M, 1)), 1)
    return loss:reshape(d.M), lse:reshape(d.M)
  end,
  cases = {
    {shape = {M = 6, V = 1000}, set = {BM = 4, BV = 128}},
    {shape = {M = 2, V = 128256}}, {shape = {M = 9, V = 77}, const = {T = f16}, seed = 1},
    {shape = {M = 5, V = 513}, const = {T = f32}, set = {BM = 2, BV = 256},
     layout = {X = "col"}, seed = 2},
    {shape = {M = 3, V = 1}, seed = 3}, {shape = {M = 0, V = 9}},
  },
}

local backward = kernel {
  name = "cross_entropy_backward",
  const = { T = T },
  args = { tensor("X", "T", "M", "V"), tensor("Y", s32, "M"), tensor("Lse", f32, "M"),
           tensor("DLoss", f32, "M"), out("DX", "T", "M", "V") },
  tune = { BM = {4, 1, 8}, BV = {1024, 512, 2048} },
  grid = function(d, c) return cdiv(d.M, c.BM), cdiv(d.V, c.BV) end,
  body = function(a, d, c, i, j)
    local at, rows = {i * c.BM, j * c.BV}, {i * c.BM}
    local label = cast(a.Y:tile(rows, {c.BM}):col(), index)
    local lse, dl = a.Lse:tile(rows, {c.BM}):col(), a.DLoss:tile(rows, {c.BM}):col()
    local p = exp2((cast(a.X:tile(at, {c.BM, c.BV}), f32) - lse) * log2e)
    local dx = (p - cast(at[2] + iota(1, c.BV) == label, f32)) * dl
    a.DX:store(at, cast(where(label >= 0 and label < d.V, dx, 0), c.T))
  end,
  inputs = function(d, rng)
    local x = rng:normal(d.M, d.V)
    return {X = x, Y = rng:int(-1, d.V, d.M), Lse = log(sum(exp(x), 1)):reshape(d.M)}
  end,
  oracle = function(t, d)
    local hot = eq(iota(1, d.V), t.Y:col())
    local used = ge(t.Y, 0) * lt(t.Y, d.V)
    return (exp(t.X - t.Lse:col()) - hot) * (t.DLoss * used):col()
  end,
  cases = {
    {shape = {M = 6, V = 1500}}, {shape = {M = 9, V = 77}, const = {T = f16}, seed = 1},
    {shape = {M = 5, V = 513}, const = {T = f32}, layout = {X = "col"}, seed = 2},
    {shape = {M = 3, V = 1}, seed = 3}, {shape = {M = 0, V = 9}}, {shape = {M = 3, V = 0}},
  },
}

return { cross_entropy = forward, cross_entropy_backward = backward }
