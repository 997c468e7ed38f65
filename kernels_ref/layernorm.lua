-- Layer norm: Y[m] = (X[m] - mean) * rstd * W + B, with rstd = 1 / sqrt(var + eps). X, Y are
-- [M, N], W, B [N]; the statistics Mean, Rstd [M] are f32. A program holds whole rows; N is fixed
-- at compile time. B, and Mean and Rstd in the forward kernel, may be left out.
--
-- Backward: DX [M, N], and DW, DB [N], which are sums over all rows. layernorm_backward gives sums
-- over R rows each, [cdiv(M, R), N], which layernorm_sum adds up: the same bits in every run.
-- layernorm_backward_atomic adds to DW and DB in one launch, in any order.

local T = {bf16, f16, f32}

local forward = kernel {
  name = "layernorm",
  const = { T = T, N = {4096, any} },
  args = {
    tensor("X", "T", "M", "N"), tensor("W", "T", "N"), optional(tensor("B", "T", "N")),
    scalar("eps", f32), out("Y", "T", "M", "N"), optional(out("Mean", f32, "M")),
    optional(out("Rstd", f32, "M")),
  },
  tune = { BM = {1, 2, 4, 8} },
  grid = function(d, c) return cdiv(d.M, c.BM) end,
  body = function(a, d, c, i)
    local m = i * c.BM
    local x = cast(a.X:tile({m, 0}, {c.BM, c.N}), f32)
    local mean = rowsum(x) * (1 / c.N)
    local xc = x - mean
    local rstd = rsqrt(rowsum(xc * xc) * (1 / c.N) + a.eps)
    if a.Mean then a.Mean:store({m}, mean:reshape(c.BM)) end
    if a.Rstd then a.Rstd:store({m}, rstd:reshape(c.BM)) end
    local y = xc * rstd * cast(a.W:tile({0}, {c.N}):row(), f32)
    if a.B then y = y + cast(a.B:tile({0}, {c.N}):row(), f32) end
    a.Y:store({m, 0}, cast(y, c.T))
  end,
  oracle = function(t, d, c)
    local m = mean(t.X, 1)
    local xc = t.X - m
    local rstd = 1 / sqrt(mean(xc * xc, 1) + t.eps)
    local y = xc * rstd * t.W:row()
    return {Y = t.B and y + t.B:row() or y, Mean = m:reshape(d.M), Rstd = rstd:reshape(d.M)}
  end,
  cases = {
    {shape = {M = 5, N = 1000}, scalar = {eps = 1e-5}},
    {shape = {M = 7, N = 63}, set = {BM = 4}, const = {T = f32}, scalar = {eps = 1e-5}, seed = 1},
    {shape = {M = 3, N = 4096}, const = {T = f16}, absent = {"B", "Mean"}, scalar = {eps = 1e-5}},
    {shape = {M = 9, N = 130}, layout = {X = "col"}, set = {BM = 2}, absent = {"Rstd"},
     scalar = {eps = 0.1}, seed = 2},
    {shape = {M = 2, N = 1}, scalar = {eps = 1e-3}, seed = 3}, {shape = {M = 0, N = 16}},
  },
}

-- Rows m to m + BM: DX is stored; what they add to DW and DB is given, (1, N).
local function backward_rows(a, c, m)
  local x, dy = a.X:tile({m, 0}, {c.BM, c.N}), cast(a.DY:tile({m, 0}, {c.BM, c.N}), f32)
  local mean, rstd = a.Mean:tile({m}, {c.BM}):col(), a.Rstd:tile({m}, {c.BM}):col()
  local xn = (cast(x, f32) - mean) * rstd
  local g = dy * cast(a.W:tile({0}, {c.N}):row(), f32)
  local g1, g2 = rowsum(g) * (1 / c.N), rowsum(g * xn) * (1 / c.N)
  a.DX:store({m, 0}, cast((g - g1 - xn * g2) * rstd, c.T))
  return colsum(dy * xn), colsum(dy)
end

-- Sums over the R rows of program i.
local function backward_sums(a, c, i)
  local dw, db = zeros(f32, 1, c.N), zeros(f32, 1, c.N)
  for m in range(i * c.R, (i + 1) * c.R, c.BM) do
    local w, b = backward_rows(a, c, m)
    dw, db = dw + w, db + b
  end
  return dw, db
end

-- DX, and for every row what it adds to DW and DB.
local function backward_oracle(t, d, c)
  local xn = (t.X - t.Mean:col()) * t.Rstd:col()
  local g = t.DY * t.W:row()
  local dx = (g - sum(g, 1) / c.N - xn * (sum(g * xn, 1) / c.N)) * t.Rstd:col()
  return dx, t.DY * xn, t.DY
end

-- Sums of the rows of x in groups of n, the last of which may be smaller.
local function group_sums(x, n)
  local rows, cols = x.shape[1], x.shape[2]
  local sums = {zeros(f64, 0, cols)}
  for m = 0, rows - 1, n do
    sums[#sums + 1] = sum(x:slice({m, 0}, {min(n, rows - m), cols}), 0)
  end
  return cat(0, table.unpack(sums))
end

local function statistics(shape, rng)
  return {Mean = rng:uniform(-0.2, 0.2, shape.M), Rstd = rng:uniform(0.5, 1.5, shape.M)}
end

local inputs = {
  tensor("DY", "T", "M", "N"), tensor("X", "T", "M", "N"), tensor("W", "T", "N"),
  tensor("Mean", f32, "M"), tensor("Rstd", f32, "M"), out("DX", "T", "M", "N"),
}
local const, tune = {T = T, N = {4096, any}, R = {64, any}}, {BM = {4, 1, 2, 8}}
local function grid(d, c) return cdiv(d.M, c.R) end
local function legal(c) return c.R % c.BM == 0 end
local cases = {
  {shape = {M = 70, N = 256}, const = {R = 32}},
  {shape = {M = 33, N = 100}, const = {R = 16, T = f32}, set = {BM = 2}, seed = 1},
  {shape = {M = 5, N = 1000}, const = {R = 8, T = f16}, layout = {X = "col"}, seed = 2},
  {shape = {M = 1, N = 1}, const = {R = 4}, seed = 3}, {shape = {M = 0, N = 16}},
}

local backward = kernel {
  name = "layernorm_backward",
  const = const, tune = tune, legal = legal, grid = grid, cases = cases, inputs = statistics,
  args = { inputs[1], inputs[2], inputs[3], inputs[4], inputs[5], inputs[6],
           out("DW", f32, "cdiv(M, R)", "N"), out("DB", f32, "cdiv(M, R)", "N") },
  body = function(a, d, c, i)
    local dw, db = backward_sums(a, c, i)
    a.DW:store({i, 0}, dw)
    a.DB:store({i, 0}, db)
  end,
  oracle = function(t, d, c)
    local dx, dw, db = backward_oracle(t, d, c)
    return dx, group_sums(dw, c.R), group_sums(db, c.R)
  end,
}

local backward_atomic = kernel {
  name = "layernorm_backward_atomic",
  const = const, tune = tune, legal = legal, grid = grid, cases = cases, inputs = statistics,
  args = { inputs[1], inputs[2], inputs[3], inputs[4], inputs[5], inputs[6],
           inout("DW", f32, "N"), inout("DB", f32, "N") },
  body = function(a, d, c, i)
    local dw, db = backward_sums(a, c, i)
    a.DW:atomic_add({iota(1, c.N)}, dw)
    a.DB:atomic_add({iota(1, c.N)}, db)
  end,
  oracle = function(t, d, c)
    local dx, dw, db = backward_oracle(t, d, c)
    return dx, t.DW + sum(dw, 0):reshape(c.N), t.DB + sum(db, 0):reshape(c.N)
  end,
}

-- DW = sum of the rows of P, rounded once.
local sums = kernel {
  name = "layernorm_sum",
  const = { T = T },
  args = { tensor("P", f32, "S", "N"), out("DW", "T", "N") },
  tune = { BN = {128, 64, 256}, BS = {32, 16} },
  grid = function(d, c) return cdiv(d.N, c.BN) end,
  body = function(a, d, c, i)
    local acc = zeros(f32, 1, c.BN)
    for s in range(0, d.S, c.BS) do
      acc = acc + colsum(a.P:tile({s, i * c.BN}, {c.BS, c.BN}))
    end
    a.DW:store({i * c.BN}, cast(acc, c.T):reshape(c.BN))
  end,
  oracle = function(t, d) return sum(t.P, 0):reshape(d.N) end,
  cases = {
    {shape = {S = 40, N = 300}}, {shape = {S = 1, N = 1}, const = {T = f16}, seed = 1},
    {shape = {S = 33, N = 128}, const = {T = f32}, layout = {P = "col"}, seed = 2},
    {shape = {S = 0, N = 5}, seed = 3}, {shape = {S = 5, N = 0}, seed = 4},
  },
}

return {
  layernorm = forward, layernorm_backward = backward, layernorm_sum = sums,
  layernorm_backward_atomic = backward_atomic,
}
