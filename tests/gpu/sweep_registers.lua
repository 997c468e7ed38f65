-- Dots of warpgroups whose left operand is computed and stays in registers: from what was loaded,
-- or from another dot's result. Programs that are no plain product. Run with `--root .` from the
-- source folder, on a GPU with the matrix unit of warpgroups or `--on emu`.

local tune = {BM = {128, 64, 192}, BN = {64, 128, 256}, BK = {64, 32, 128}}
local types = {T = {bf16, f16}}
local kernels = {}

local function cases(list)
  for i, c in ipairs(list) do c.seed = i end
  return list
end

-- Rows of A are spread over one to three warpgroups; tails along each dim.
local plain = {
  {shape = {M = 128, N = 64, K = 128}, set = {BM = 128, BN = 64, BK = 64},
   schedule = {warpgroups = 2}},
  {shape = {M = 136, N = 200, K = 200}, set = {BM = 128, BN = 128, BK = 64},
   schedule = {warpgroups = 2}, const = {T = f16}},
  {shape = {M = 72, N = 136, K = 40}, set = {BM = 64, BN = 128, BK = 32},
   schedule = {warpgroups = 1}},
  {shape = {M = 72, N = 136, K = 40}, set = {BM = 64, BN = 128, BK = 32},
   schedule = {warpgroups = 2}}, -- columns over warpgroups: each has all of A
  {shape = {M = 200, N = 72, K = 136}, set = {BM = 192, BN = 64, BK = 64},
   schedule = {warpgroups = 3}},
  {shape = {M = 264, N = 72, K = 24}, set = {BM = 256, BN = 64, BK = 32},
   schedule = {warpgroups = 2, stages = 1}}, -- two blocks of 64 rows each
}
local function grid(d, c) return cdiv(d.M, c.BM), cdiv(d.N, c.BN) end

-- A computed from one load, rows or columns contiguous.
local layouts = {}
for _, c in ipairs(plain) do layouts[#layouts + 1] = c end
for _, A in ipairs {"row", "col"} do
  for _, B in ipairs {"row", "col"} do
    layouts[#layouts + 1] = {
      shape = {M = 136, N = 128, K = 72}, set = {BM = 128, BN = 64, BK = 64},
      layout = {A = A, B = B}, schedule = {warpgroups = 2}}
  end
end
kernels.positive = kernel {
  name = "positive", const = types, tune = {BM = {128, 64, 192, 256}, BN = tune.BN, BK = tune.BK},
  grid = grid, cases = cases(layouts),
  args = {tensor("A", "T", "M", "K"), tensor("B", "T", "N", "K"), out("C", "T", "M", "N")},
  body = function(a, d, c, i, j)
    local x = zeros(f32, c.BM, c.BN)
    for k in range(0, d.K, c.BK) do
      local t = max(a.A:tile({i * c.BM, k}, {c.BM, c.BK}), 0)
      x = x + dot(t, a.B:tile({j * c.BN, k}, {c.BN, c.BK}):T())
    end
    a.C:store({i * c.BM, j * c.BN}, cast(x, c.T))
  end,
}

-- A computed from two tiles and a row and a column of scales: three loads and more feed one dot.
kernels.mixed = kernel {
  name = "mixed", const = types, tune = tune, grid = grid, cases = cases(plain),
  args = {
    tensor("A", "T", "M", "K"), tensor("G", "T", "M", "K"), tensor("s", f32, "M"),
    tensor("t", f32, "K"), tensor("B", "T", "N", "K"), out("C", "T", "M", "N"),
  },
  body = function(a, d, c, i, j)
    local x, s = zeros(f32, c.BM, c.BN), a.s:tile({i * c.BM}, {c.BM}):col()
    for k in range(0, d.K, c.BK) do
      local at, size = {i * c.BM, k}, {c.BM, c.BK}
      local y = cast(a.A:tile(at, size), f32) * s + cast(a.G:tile(at, size), f32)
      y = y * a.t:tile({k}, {c.BK}):row()
      x = x + dot(cast(y, c.T), a.B:tile({j * c.BN, k}, {c.BN, c.BK}):T())
    end
    a.C:store({i * c.BM, j * c.BN}, cast(x, c.T))
  end,
}

-- A of 8 bits, widened.
kernels.widened = kernel {
  name = "widened", const = {T = {bf16, f16}, Q = {s8, u8, e4m3}}, tune = tune, grid = grid,
  cases = cases {
    {shape = {M = 136, N = 72, K = 144}, set = {BM = 128, BN = 64, BK = 64},
     schedule = {warpgroups = 2}},
    {shape = {M = 72, N = 72, K = 48}, set = {BM = 64, BN = 64, BK = 32},
     schedule = {warpgroups = 1}, const = {Q = u8, T = f16}},
    {shape = {M = 128, N = 128, K = 256}, set = {BM = 128, BN = 128, BK = 128},
     schedule = {warpgroups = 2}, const = {Q = e4m3}, layout = {A = "col"}},
  },
  args = {tensor("A", "Q", "M", "K"), tensor("B", "T", "N", "K"), out("C", "T", "M", "N")},
  body = function(a, d, c, i, j)
    local x = zeros(f32, c.BM, c.BN)
    for k in range(0, d.K, c.BK) do
      local t = cast(a.A:tile({i * c.BM, k}, {c.BM, c.BK}), c.T)
      x = x + dot(t, a.B:tile({j * c.BN, k}, {c.BN, c.BK}):T())
    end
    a.C:store({i * c.BM, j * c.BN}, cast(x, c.T))
  end,
}

-- A of f32, made small before it is narrowed: what is read in registers comes as it was, all 24
-- bits of it, although it feeds a dot.
kernels.narrowed = kernel {
  name = "narrowed", const = {T = {bf16, f16}}, tune = tune, grid = grid,
  inputs = function(s, rng, c)
    return {A = rng:int(0, 127, s.M, s.K) + 8388608, B = cast(rng:int(-1, 1, s.N, s.K), c.T)}
  end,
  cases = cases {
    {shape = {M = 128, N = 128, K = 128}, set = {BM = 128, BN = 64, BK = 64},
     schedule = {warpgroups = 2}},
    {shape = {M = 64, N = 64, K = 64}, set = {BM = 64, BN = 64, BK = 32},
     schedule = {warpgroups = 1}, const = {T = f16}},
    {shape = {M = 128, N = 64, K = 64}, set = {BM = 128, BN = 64, BK = 64}}, -- as it is by default
    {shape = {M = 192, N = 128, K = 128}, set = {BM = 192, BN = 128, BK = 64},
     schedule = {warpgroups = 3}},
  },
  args = {tensor("A", f32, "M", "K"), tensor("B", "T", "N", "K"), out("C", f32, "M", "N")},
  body = function(a, d, c, i, j)
    local x = zeros(f32, c.BM, c.BN)
    for k in range(0, d.K, c.BK) do
      local t = cast(a.A:tile({i * c.BM, k}, {c.BM, c.BK}) - 8388608, c.T)
      x = x + dot(t, a.B:tile({j * c.BN, k}, {c.BN, c.BK}):T())
    end
    a.C:store({i * c.BM, j * c.BN}, x)
  end,
}

-- ---- chains ----

local chain_cases = {
  {shape = {M = 128, L = 128, K = 64, N = 64}, set = {BM = 128, BL = 64, BK = 64, BN = 64},
   schedule = {warpgroups = 2}},
  {shape = {M = 136, L = 200, K = 72, N = 136}, set = {BM = 128, BL = 64, BK = 64, BN = 128},
   schedule = {warpgroups = 2}},
  {shape = {M = 72, L = 40, K = 136, N = 64}, set = {BM = 64, BL = 128, BK = 32, BN = 64},
   schedule = {warpgroups = 1}, const = {T = f16}},
  {shape = {M = 200, L = 72, K = 40, N = 72}, set = {BM = 192, BL = 64, BK = 32, BN = 64},
   schedule = {warpgroups = 3}},
  {shape = {M = 64, L = 64, K = 64, N = 128}, set = {BM = 64, BL = 64, BK = 64, BN = 128},
   schedule = {warpgroups = 2}}, -- the first product crosses warpgroups
}
local chain_tune = {BM = {128, 64, 192}, BL = {64, 128}, BK = {64, 32}, BN = {64, 128}}

-- (A B) C: the first product never leaves the registers.
kernels.chain = kernel {
  name = "chain", const = types, tune = chain_tune, grid = grid, cases = cases(chain_cases),
  args = {
    tensor("A", "T", "M", "K"), tensor("B", "T", "L", "K"), tensor("C", "T", "L", "N"),
    out("D", "T", "M", "N"),
  },
  body = function(a, d, c, i, j)
    local y = zeros(f32, c.BM, c.BN)
    for l in range(0, d.L, c.BL) do
      local x = zeros(f32, c.BM, c.BL)
      for k in range(0, d.K, c.BK) do
        x = x + dot(a.A:tile({i * c.BM, k}, {c.BM, c.BK}), a.B:tile({l, k}, {c.BL, c.BK}):T())
      end
      y = y + dot(cast(x, c.T), a.C:tile({l, j * c.BN}, {c.BL, c.BN}))
    end
    a.D:store({i * c.BM, j * c.BN}, cast(y, c.T))
  end,
}

-- The same, the first product made as B A^T and transposed: its elements change their threads.
kernels.chain_transposed = kernel {
  name = "chain_transposed", const = types, tune = chain_tune, grid = grid, cases = cases {
    {shape = {M = 128, L = 128, K = 64, N = 64}, set = {BM = 128, BL = 64, BK = 64, BN = 64},
     schedule = {warpgroups = 1}},
    {shape = {M = 136, L = 200, K = 72, N = 136}, set = {BM = 128, BL = 128, BK = 32, BN = 64},
     schedule = {warpgroups = 2}},
  },
  args = {
    tensor("A", "T", "M", "K"), tensor("B", "T", "L", "K"), tensor("C", "T", "L", "N"),
    out("D", "T", "M", "N"),
  },
  body = function(a, d, c, i, j)
    local y = zeros(f32, c.BM, c.BN)
    for l in range(0, d.L, c.BL) do
      local x = zeros(f32, c.BL, c.BM)
      for k in range(0, d.K, c.BK) do
        x = x + dot(a.B:tile({l, k}, {c.BL, c.BK}), a.A:tile({i * c.BM, k}, {c.BM, c.BK}):T())
      end
      y = y + dot(cast(x, c.T):T(), a.C:tile({l, j * c.BN}, {c.BL, c.BN}))
    end
    a.D:store({i * c.BM, j * c.BN}, cast(y, c.T))
  end,
}

return kernels
