-- Dots of warpgroups of 8-bit operands: integers, and floats whose sums may be short. Run with
-- `--root .` from the source folder, on a GPU with the matrix unit of warpgroups or `--on emu`.

local kernels = {}
local tune = {BM = {128, 64, 192}, BN = {128, 64, 256}, BK = {64, 32, 128, 256}}
local function grid(d, c) return cdiv(d.M, c.BM), cdiv(d.N, c.BN) end
local function cases(list)
  for i, c in ipairs(list) do c.seed = i end
  return list
end

-- K tails of 16, every row of 16 bytes; the swizzles of 32, 64 and 128 bytes; one to three
-- warpgroups.
local plain = {}
for _, s in ipairs {
  {1, 64, 64, 32}, {1, 64, 128, 64}, {2, 128, 128, 128}, {2, 128, 64, 256}, {2, 64, 256, 128},
  {3, 192, 64, 64}, {2, 256, 64, 128},
} do
  plain[#plain + 1] = {
    shape = {M = 2 * s[2] - 8, N = s[3] + 16, K = 3 * s[4] + 16},
    set = {BM = s[2], BN = s[3], BK = s[4]}, schedule = {warpgroups = s[1]}}
end
local function with(const)
  local out = {}
  for i, c in ipairs(plain) do
    out[i] = {shape = c.shape, set = c.set, schedule = c.schedule, const = const[i % #const + 1]}
  end
  return out
end

-- ---- integers ----

-- every number of columns that the instruction has (row 1)
local integers = with {{T = s8}, {T = u8}}
for _, BN in ipairs {8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240,
                     256} do
  integers[#integers + 1] = {
    shape = {M = 72, N = BN + 8, K = 80}, set = {BM = 64, BN = BN, BK = 64},
    schedule = {warpgroups = 1}}
end
kernels.integers = kernel {
  name = "integers", const = {T = {s8, u8}},
  tune = {BM = {128, 64, 192, 256}, BN = {128}, BK = tune.BK}, grid = grid,
  cases = cases(integers),
  args = {tensor("X", "T", "M", "K"), tensor("Y", "T", "N", "K"), out("C", s32, "M", "N")},
  body = function(a, d, c, i, j)
    local x = zeros(s32, c.BM, c.BN)
    for k in range(0, d.K, c.BK) do
      x = x + dot(a.X:tile({i * c.BM, k}, {c.BM, c.BK}), a.Y:tile({j * c.BN, k}, {c.BN, c.BK}):T())
    end
    a.C:store({i * c.BM, j * c.BN}, x)
  end,
}

-- Sums that do not start at zero, once for each tile: not what the unit starts a sum with.
kernels.offset = kernel {
  name = "offset", const = {T = {s8, u8}}, tune = {BM = tune.BM, BN = {64, 128}, BK = {64, 32}},
  grid = grid, cases = cases {
    {shape = {M = 136, N = 72, K = 144}, set = {BM = 128, BN = 64, BK = 64},
     schedule = {warpgroups = 2}},
    {shape = {M = 72, N = 72, K = 32}, set = {BM = 64, BN = 64, BK = 32},
     schedule = {warpgroups = 1}, const = {T = u8}},
  },
  args = {tensor("X", "T", "M", "K"), tensor("Y", "T", "N", "K"), out("C", s32, "M", "N")},
  body = function(a, d, c, i, j)
    local x = full(s32, 3, c.BM, c.BN)
    for k in range(0, d.K, c.BK) do
      x = x + dot(a.X:tile({i * c.BM, k}, {c.BM, c.BK}), a.Y:tile({j * c.BN, k}, {c.BN, c.BK}):T())
    end
    a.C:store({i * c.BM, j * c.BN}, x)
  end,
}

-- A computed in 8 bits, from registers; scales of rows and columns at the end.
kernels.quantized = kernel {
  name = "quantized", const = {}, tune = {BM = tune.BM, BN = {64, 128}, BK = {64, 32, 128}},
  grid = grid, cases = cases {
    {shape = {M = 136, N = 72, K = 144}, set = {BM = 128, BN = 64, BK = 64},
     schedule = {warpgroups = 2}},
    {shape = {M = 72, N = 136, K = 48}, set = {BM = 64, BN = 128, BK = 32},
     schedule = {warpgroups = 1}},
  },
  args = {
    tensor("X", s8, "M", "K"), tensor("Y", s8, "N", "K"), tensor("s", f32, "M"),
    tensor("t", f32, "N"), out("C", bf16, "M", "N"),
  },
  body = function(a, d, c, i, j)
    local x = zeros(s32, c.BM, c.BN)
    for k in range(0, d.K, c.BK) do
      local y = max(a.X:tile({i * c.BM, k}, {c.BM, c.BK}), 0)
      x = x + dot(y, a.Y:tile({j * c.BN, k}, {c.BN, c.BK}):T())
    end
    local scale = a.s:tile({i * c.BM}, {c.BM}):col() * a.t:tile({j * c.BN}, {c.BN}):row()
    a.C:store({i * c.BM, j * c.BN}, cast(cast(x, f32) * scale, bf16))
  end,
}

-- ---- floats ----

local function product(prec)
  return function(a, d, c, i, j)
    local x = zeros(f32, c.BM, c.BN)
    for k in range(0, d.K, c.BK) do
      local y = a.Y:tile({j * c.BN, k}, {c.BN, c.BK}):T()
      x = x + dot(a.X:tile({i * c.BM, k}, {c.BM, c.BK}), y, {prec = prec})
    end
    a.C:store({i * c.BM, j * c.BN}, cast(x, bf16))
  end
end
for _, prec in ipairs {"promoted", "fast"} do
  kernels[prec] = kernel {
    name = prec, const = {A = {e4m3, e5m2}, B = {e4m3, e5m2}},
    tune = {BM = {128, 64, 192, 256}, BN = tune.BN, BK = tune.BK}, grid = grid,
    cases = cases(with {{A = e4m3, B = e4m3}, {A = e5m2, B = e4m3}, {A = e4m3, B = e5m2}}),
    args = {tensor("X", "A", "M", "K"), tensor("Y", "B", "N", "K"), out("C", bf16, "M", "N")},
    body = product(prec),
  }
end

-- Each block of k has its own scales, in f32: the sums of the unit are short, and end there.
kernels.scaled = kernel {
  name = "scaled", const = {A = {e4m3, e5m2}}, tune = {BM = tune.BM, BN = {128, 64}, BK = {128}},
  grid = grid, cases = cases {
    {shape = {M = 136, N = 72, K = 272}, set = {BM = 128, BN = 64, BK = 128},
     schedule = {warpgroups = 2}},
    {shape = {M = 72, N = 136, K = 128}, set = {BM = 64, BN = 128, BK = 128},
     schedule = {warpgroups = 1}, const = {A = e5m2}},
  },
  args = {
    tensor("X", "A", "M", "K"), tensor("Y", "A", "N", "K"), tensor("S", f32, "M", "cdiv(K, 128)"),
    out("C", bf16, "M", "N"),
  },
  body = function(a, d, c, i, j)
    local x = zeros(f32, c.BM, c.BN)
    for k in range(0, d.K, c.BK) do
      local y = a.Y:tile({j * c.BN, k}, {c.BN, c.BK}):T()
      local s = a.S:tile({i * c.BM, k // 128}, {c.BM, 1})
      x = x + dot(a.X:tile({i * c.BM, k}, {c.BM, c.BK}), y, {prec = "promoted"}) * s
    end
    a.C:store({i * c.BM, j * c.BN}, cast(x, bf16))
  end,
}

return kernels
