-- Sweeps of kernels whose dots go to the matrix unit of warpgroups, fed by the tensor memory unit:
-- each way to cut a dot into one to three warpgroups, layouts, tails, and programs that are no
-- plain
-- product. Run with `--root .` from the source folder, on a GPU with that unit or `--on emu`.

local family = require "kernels_ref.gemm"

local cases = {}
local function add(c) cases[#cases + 1] = c c.seed = #cases end
local none = {"bias", "R"}

-- cuts: rows and columns of the tile over warpgroups; several instructions along either (row 1)
for _, s in ipairs {
  {1, 64, 64, 64}, {1, 64, 256, 32}, {1, 128, 128, 64}, {2, 128, 256, 64}, {2, 256, 128, 64},
  {2, 128, 64, 128}, {2, 64, 256, 64}, {2, 128, 128, 16}, {3, 192, 128, 64}, {3, 192, 64, 32},
  {2, 256, 64, 128}, {2, 128, 192, 64}, {2, 128, 224, 64}, {2, 128, 96, 64}, {1, 64, 40, 64},
} do
  local set, schedule = {BM = s[2], BN = s[3], BK = s[4]}, {warpgroups = s[1]}
  add {shape = {M = 2 * s[2] - 8, N = s[3] + 16, K = 3 * s[4] + 8}, set = set,
       schedule = schedule, absent = none}
  add {shape = {M = s[2], N = s[3], K = s[4]}, set = set, schedule = schedule, absent = none,
       const = {T = f16}}
end
-- every N of one instruction
for BN = 8, 256, 8 do
  add {shape = {M = 72, N = BN + 8, K = 72}, set = {BM = 64, BN = BN, BK = 64},
       schedule = {warpgroups = 1},
       absent = none}
end
-- residual and bias that come while the dots run, through the staging of C: each cut, edges, more
-- tiles than SMs, one iteration, a residual that does not come so
for _, s in ipairs {
  {1, 64, 64, 64}, {1, 64, 256, 64}, {2, 128, 256, 64}, {2, 256, 64, 64}, {2, 64, 256, 64},
  {2, 128, 96, 64}, {2, 128, 224, 64}, {3, 192, 64, 32},
} do
  local set, schedule = {BM = s[2], BN = s[3], BK = s[4]}, {warpgroups = s[1]}
  add {shape = {M = 2 * s[2] - 7, N = s[3] + 16, K = 3 * s[4] + 8}, set = set, schedule = schedule}
  add {shape = {M = s[2], N = s[3], K = 64}, set = set, schedule = schedule, const = {T = f16},
       absent = {"bias"}}
end
add {shape = {M = 770, N = 776, K = 72}, set = {BM = 64, BN = 64, BK = 64},
     schedule = {warpgroups = 1}}
add {shape = {M = 770, N = 1544, K = 72}, set = {BM = 128, BN = 64, BK = 64},
     schedule = {warpgroups = 2, cluster = 2}}
add {shape = {M = 128, N = 64, K = 8}, set = {BM = 128, BN = 64, BK = 64},
     schedule = {warpgroups = 2}}
add {shape = {M = 130, N = 136, K = 64}, set = {BM = 128, BN = 128, BK = 64},
     schedule = {warpgroups = 2, staging = 1}}
-- rows that begin in the middle of a line; what L2 fetches for them
for promote = 0, 3 do
  add {shape = {M = 200, N = 200, K = 200}, set = {BM = 128, BN = 64, BK = 64}, absent = none,
       schedule = {warpgroups = 2, promote = promote}}
end
-- layouts: rows or columns of either operand contiguous; tails of 8
for _, A in ipairs {"row", "col"} do
  for _, B in ipairs {"row", "col"} do
    for _, s in ipairs {{M = 256, N = 256, K = 128}, {M = 136, N = 200, K = 72}} do
      for _, T in ipairs {bf16, f16} do
        add {shape = s, const = {T = T}, layout = {A = A, B = B},
             set = {BM = 128, BN = 128, BK = 64}, schedule = {warpgroups = 2}}
      end
    end
  end
end
-- results by columns, alone and with what is added to them
for _, T in ipairs {bf16, f16} do
  for _, absent in ipairs {none, {"bias"}, {"R"}} do
    add {shape = {M = 136, N = 136, K = 72}, const = {T = T}, layout = {C = "col", R = "col"},
         set = {BM = 128, BN = 64, BK = 64}, schedule = {warpgroups = 2}, absent = absent}
    add {shape = {M = 64, N = 128, K = 64}, const = {T = T}, layout = {C = "col"}, absent = absent,
         set = {BM = 64, BN = 128, BK = 64}, schedule = {warpgroups = 1}}
  end
end
-- columns of B side by side, cut over warpgroups or instructions: panels of 64 stay whole
for _, s in ipairs {{2, 64, 128}, {2, 128, 128}, {2, 64, 256}, {3, 64, 192}} do
  add {shape = {M = s[2] + 8, N = s[3] + 8, K = 72}, layout = {B = "col"}, absent = none,
       set = {BM = s[2], BN = s[3], BK = 64}, schedule = {warpgroups = s[1]}}
end
-- K tails; one iteration; fewer iterations than slots
for _, K in ipairs {8, 16, 24, 64, 72, 128, 136, 504} do
  for _, stages in ipairs {1, 2, 5} do
    add {shape = {M = 128, N = 128, K = K}, absent = none,
         set = {BM = 128, BN = 64, BK = 64}, schedule = {warpgroups = 2, stages = stages}}
  end
end
-- M and N tails; stores that the tensor memory unit cannot make
for _, M in ipairs {1, 7, 17, 64, 119, 1000} do
  for _, N in ipairs {8, 64, 104, 192, 512, 1000} do
    add {shape = {M = M, N = N, K = 72}, absent = none,
         set = {BM = 128, BN = 64, BK = 64}, schedule = {warpgroups = 2}}
  end
end
for _, N in ipairs {1, 63, 229, 257} do
  add {shape = {M = 100, N = N, K = 72}, set = {BM = 64, BN = 64, BK = 64},
       schedule = {warpgroups = 1}}
end
add {shape = {M = 100, N = 96, K = 64}, layout = {C = "col"}, absent = none,
     set = {BM = 128, BN = 64, BK = 64}, schedule = {warpgroups = 2}}
add {shape = {M = 100, N = 97, K = 64}, stride = {C = {99, 1}}, absent = none,
     set = {BM = 128, BN = 64, BK = 64}, schedule = {warpgroups = 2}}
add {shape = {M = 100, N = 96, K = 64}, stride = {A = {72, 1}, B = {80, 1}, C = {104, 1}},
     absent = none, set = {BM = 128, BN = 64, BK = 64}, schedule = {warpgroups = 2}}
-- more tiles than blocks; raster in groups (row 7)
for _, group in ipairs {1, 4, 8, 16} do
  add {shape = {M = 640, N = 1856, K = 40}, absent = none,
       set = {BM = 64, BN = 64, BK = 32}, schedule = {warpgroups = 1, group = group}}
end
-- results leave through fewer panels than a tile has, several tiles a block
add {shape = {M = 1000, N = 1160, K = 40}, absent = none, set = {BM = 64, BN = 128, BK = 32},
     schedule = {warpgroups = 1, staging = 1}}
for _, staging in ipairs {1, 2, 3} do
  add {shape = {M = 376, N = 520, K = 72}, set = {BM = 256, BN = 128, BK = 32},
       schedule = {warpgroups = 2, staging = staging}}
end
-- clusters that share an operand: along either axis, all layouts, tails, odd numbers of tiles, one
-- or several tiles a block, epilogues
for axis = 0, 1 do
  for _, A in ipairs {"row", "col"} do
    for _, B in ipairs {"row", "col"} do
      add {shape = {M = 384, N = 384, K = 136}, layout = {A = A, B = B},
           set = {BM = 128, BN = 128, BK = 64},
           schedule = {warpgroups = 2, cluster = 2, cluster_axis = axis}}
    end
  end
  for _, s in ipairs {{1, 2, 136, 136}, {2, 2, 136, 136}, {5, 2, 296, 904}, {3, 4, 296, 904}} do
    add {shape = {M = s[3], N = s[4], K = 72}, absent = none, set = {BM = 64, BN = 32, BK = 32},
         schedule = {warpgroups = 1, stages = s[1], cluster = s[2], cluster_axis = axis, group = 4}}
  end
  add {shape = {M = 392, N = 136, K = 72}, set = {BM = 192, BN = 48, BK = 32}, absent = none,
       schedule = {warpgroups = 3, cluster = 3, cluster_axis = axis}}
  add {shape = {M = 136, N = 200, K = 1000}, absent = none, set = {BM = 64, BN = 64, BK = 64},
       schedule = {warpgroups = 1, split_k = 3, cluster = 2, cluster_axis = axis}}
  add {shape = {M = 72, N = 63, K = 72}, set = {BM = 64, BN = 32, BK = 64},
       schedule = {warpgroups = 1, cluster = 2, cluster_axis = axis}}
end
add {shape = {M = 8, N = 8, K = 8}, set = {BM = 128, BN = 256, BK = 64},
     schedule = {warpgroups = 2, cluster = 2}}
-- a loop that the blocks of a cluster share: parts without iterations, several tiles a block
for _, parts in ipairs {2, 3, 4} do
  add {shape = {M = 72, N = 136, K = 40 * parts - 8}, absent = none,
       set = {BM = 64, BN = 64, BK = 32},
       schedule = {warpgroups = 1, split_k = parts, split_cluster = 1, stages = 2}}
  add {shape = {M = 136, N = 72, K = 24}, set = {BM = 128, BN = 32, BK = 32},
       schedule = {warpgroups = 2, split_k = parts, split_cluster = 1}}
end
add {shape = {M = 584, N = 280, K = 136}, absent = none, set = {BM = 64, BN = 16, BK = 64},
     schedule = {warpgroups = 1, split_k = 2, split_cluster = 1}}
add {shape = {M = 104, N = 63, K = 136}, set = {BM = 64, BN = 64, BK = 64}, layout = {A = "col"},
     schedule = {warpgroups = 1, split_k = 2, split_cluster = 1}}
-- operands that leave L2 first, alone and with all else
for axis = 0, 1 do
  add {shape = {M = 136, N = 72, K = 72}, set = {BM = 64, BN = 64, BK = 64},
       schedule = {warpgroups = 1, stream_axis = axis}}
  add {shape = {M = 136, N = 72, K = 136}, set = {BM = 64, BN = 64, BK = 64},
       schedule = {warpgroups = 1, stream_axis = axis, split_k = 2, split_cluster = 1}}
  add {shape = {M = 136, N = 72, K = 72}, set = {BM = 64, BN = 64, BK = 64},
       schedule = {warpgroups = 1, stream_axis = axis, cluster = 2, cluster_axis = axis}}
end

-- a product's loop in parts (row 9)
for _, parts in ipairs {2, 3, 8} do
  add {shape = {M = 72, N = 136, K = 1000}, set = {BM = 64, BN = 64, BK = 64}, absent = none,
       schedule = {warpgroups = 1, split_k = parts}}
  add {shape = {M = 136, N = 72, K = 328}, set = {BM = 128, BN = 64, BK = 32},
       schedule = {warpgroups = 2, split_k = parts}}
end

local kernels = {gemm = family.gemm:with {cases = cases}}
local few = {
  {shape = {M = 136, N = 264, K = 200}, set = {BM = 128, BN = 128, BK = 64},
       schedule = {warpgroups = 2}},
  {shape = {M = 200, N = 104, K = 40}, set = {BM = 64, BN = 64, BK = 64},
       schedule = {warpgroups = 1},
   const = {T = f16}, layout = {R = "col"}},
}
for name, k in pairs(family) do
  if name ~= "gemm" then kernels[name] = k:with {cases = few} end
end

-- ---- programs that are no plain product ----

local tune = {BM = {128, 64, 192, 256}, BN = {128, 64, 256}, BK = {64, 32, 128}}
local function grid(d, c) return cdiv(d.M, c.BM), cdiv(d.N, c.BN) end
local shapes = {
  {shape = {M = 128, N = 128, K = 128}, set = {BM = 128, BN = 128, BK = 64},
       schedule = {warpgroups = 2}},
  {shape = {M = 200, N = 136, K = 200}, set = {BM = 128, BN = 64, BK = 64},
       schedule = {warpgroups = 2}},
  {shape = {M = 72, N = 264, K = 40}, set = {BM = 64, BN = 64, BK = 32},
       schedule = {warpgroups = 1},
   const = {T = f16}, seed = 1},
  {shape = {M = 328, N = 136, K = 72}, set = {BM = 64, BN = 64, BK = 32},
       schedule = {warpgroups = 1, cluster = 2}, seed = 2},
}
local parted = {}
for i, s in ipairs(shapes) do parted[i] = s end
parted[#parted + 1] = {shape = {M = 200, N = 136, K = 200}, set = {BM = 64, BN = 64, BK = 32},
                       schedule = {warpgroups = 1, split_k = 2, split_cluster = 1}}

-- Two products that share their left operand.
kernels.dual = kernel {
  name = "dual", const = {T = {bf16, f16}}, tune = tune, grid = grid, cases = parted,
  args = {
    tensor("A", "T", "M", "K"), tensor("B1", "T", "N", "K"), tensor("B2", "T", "N", "K"),
    out("C", "T", "M", "N"), out("G", "T", "M", "N"),
  },
  body = function(a, d, c, i, j)
    local x, y = zeros(f32, c.BM, c.BN), zeros(f32, c.BM, c.BN)
    for k in range(0, d.K, c.BK) do
      local t = a.A:tile({i * c.BM, k}, {c.BM, c.BK})
      x = x + dot(t, a.B1:tile({j * c.BN, k}, {c.BN, c.BK}):T())
      y = y + dot(t, a.B2:tile({j * c.BN, k}, {c.BN, c.BK}):T())
    end
    a.C:store({i * c.BM, j * c.BN}, cast(max(x, 0) + y, c.T))
    a.G:store({i * c.BM, j * c.BN}, cast(y, c.T))
  end,
}

-- Two products into one accumulator, four loads.
kernels.two = kernel {
  name = "two", const = {T = {bf16, f16}}, tune = tune, grid = grid, cases = parted,
  args = {
    tensor("A", "T", "M", "K"), tensor("B", "T", "N", "K"), tensor("A2", "T", "M", "K"),
    tensor("B2", "T", "N", "K"), out("C", "T", "M", "N"),
  },
  body = function(a, d, c, i, j)
    local x = zeros(f32, c.BM, c.BN)
    for k in range(0, d.K, c.BK) do
      x = x + dot(a.A:tile({i * c.BM, k}, {c.BM, c.BK}), a.B:tile({j * c.BN, k}, {c.BN, c.BK}):T())
      x = x + dot(a.A2:tile({i * c.BM, k}, {c.BM, c.BK}), a.B2:tile({j * c.BN, k}, {c.BN,
        c.BK}):T())
    end
    a.C:store({i * c.BM, j * c.BN}, cast(x, c.T))
  end,
}

-- No loop; a result of 32 bits.
kernels.once = kernel {
  name = "once", const = {T = {bf16, f16}}, tune = tune, grid = grid, cases = {
    {shape = {M = 200, N = 136, K = 32}, set = {BM = 128, BN = 128, BK = 32},
         schedule = {warpgroups = 2}},
    {shape = {M = 64, N = 64, K = 24}, set = {BM = 64, BN = 64, BK = 32},
         schedule = {warpgroups = 1}},
    {shape = {M = 200, N = 136, K = 24}, set = {BM = 64, BN = 64, BK = 32},
         schedule = {warpgroups = 1, cluster = 2, cluster_axis = 0}},
  },
  args = {tensor("A", "T", "M", "K"), tensor("B", "T", "N", "K"), out("C", f32, "M", "N")},
  body = function(a, d, c, i, j)
    local x = dot(a.A:tile({i * c.BM, 0}, {c.BM, c.BK}), a.B:tile({j * c.BN, 0}, {c.BN, c.BK}):T())
    a.C:store({i * c.BM, j * c.BN}, x)
  end,
}

-- A batch: tensor maps of three dims; A with its middle dim contiguous.
kernels.batched = kernel {
  name = "batched", const = {T = {bf16, f16}}, tune = tune, cases = {
    {shape = {B = 3, M = 200, N = 136, K = 72}, set = {BM = 128, BN = 128, BK = 32},
         schedule = {warpgroups = 2}},
    {shape = {B = 2, M = 72, N = 64, K = 64}, set = {BM = 64, BN = 64, BK = 64},
         schedule = {warpgroups = 1},
     stride = {A = {4608, 1, 72}}},
    {shape = {B = 3, M = 200, N = 136, K = 72}, set = {BM = 64, BN = 64, BK = 64},
         schedule = {warpgroups = 1, cluster = 2}},
    {shape = {B = 3, M = 200, N = 136, K = 72}, set = {BM = 64, BN = 64, BK = 64},
         schedule = {warpgroups = 1, cluster = 2, cluster_axis = 2}},
  },
  args = {tensor("A", "T", "B", "M", "K"), tensor("W", "T", "B", "N", "K"), out("C", "T", "B",
    "M", "N")},
  grid = function(d, c) return d.B, cdiv(d.M, c.BM), cdiv(d.N, c.BN) end,
  body = function(a, d, c, b, i, j)
    local A, W, C = a.A:at(b), a.W:at(b), a.C:at(b)
    local x = zeros(f32, c.BM, c.BN)
    for k in range(0, d.K, c.BK) do
      x = x + dot(A:tile({i * c.BM, k}, {c.BM, c.BK}), W:tile({j * c.BN, k}, {c.BN, c.BK}):T())
    end
    C:store({i * c.BM, j * c.BN}, cast(x, c.T))
  end,
}

-- Results of 32 bits: panels of 8, 16 and 32 columns, all of them or by turns, added to R.
local wide = {}
for _, s in ipairs {
  {1, 64, 64}, {2, 128, 256}, {2, 128, 96}, {1, 64, 40}, {1, 64, 48}, {2, 256, 128}, {3, 192, 64},
} do
  for _, R in ipairs {true, false} do
    wide[#wide + 1] = {
      shape = {M = 2 * s[2] - 7, N = s[3] + 16, K = 136}, seed = #wide,
      absent = R and {} or {"R"},
      set = {BM = s[2], BN = s[3], BK = 64},
      schedule = {warpgroups = s[1], staging = #wide % 3 == 1 and 1 or nil},
      const = {T = #wide % 2 == 0 and bf16 or f16, O = #wide % 4 == 3 and s32 or f32}}
  end
end
for _, O in ipairs {f32, s32} do
  wide[#wide + 1] = {
    shape = {M = 136, N = 72, K = 72}, seed = #wide, layout = {C = "col"}, absent = {"R"},
    set = {BM = 128, BN = 64, BK = 64}, schedule = {warpgroups = 2}, const = {O = O}}
end
kernels.wide = kernel {
  name = "wide", const = {T = {bf16, f16}, O = {f32, s32}}, tune = tune, cases = wide,
  args = {
    tensor("A", "T", "M", "K"), tensor("B", "T", "N", "K"), optional(tensor("R", f32, "M", "N")),
    out("C", "O", "M", "N"),
  },
  grid = function(d, c) return cdiv(d.M, c.BM), cdiv(d.N, c.BN) end,
  body = function(a, d, c, i, j)
    local m, n = i * c.BM, j * c.BN
    local x = zeros(f32, c.BM, c.BN)
    for k in range(0, d.K, c.BK) do
      x = x + dot(a.A:tile({m, k}, {c.BM, c.BK}), a.B:tile({n, k}, {c.BN, c.BK}):T())
    end
    if a.R then x = x * 2.0 + a.R:tile({m, n}, {c.BM, c.BN}) end
    a.C:store({m, n}, cast(x, c.O))
  end,
}

-- Products of tf32, whose f32 operands the tensor memory unit rounds on their way in.
local tf32 = {}
for _, s in ipairs {
  {1, 64, 64, 32}, {1, 64, 40, 16}, {1, 64, 128, 8}, {2, 128, 256, 32}, {2, 256, 64, 64},
  {3, 192, 64, 32}, {2, 128, 128, 32, 2}, {1, 64, 64, 32, nil, 3},
} do
  tf32[#tf32 + 1] = {
    shape = {M = 2 * s[2] - 7, N = s[3] + 16, K = 5 * s[4] + 4}, seed = #tf32,
    set = {BM = s[2], BN = s[3], BK = s[4]},
    schedule = {warpgroups = s[1], cluster = s[5], split_k = s[6]}}
end
kernels.tf32 = kernel {
  name = "tf32", const = {}, tune = tune, cases = tf32,
  args = {tensor("A", f32, "M", "K"), tensor("B", f32, "N", "K"), out("C", f32, "M", "N")},
  grid = function(d, c) return cdiv(d.M, c.BM), cdiv(d.N, c.BN) end,
  body = function(a, d, c, i, j)
    local m, n, x = i * c.BM, j * c.BN, zeros(f32, c.BM, c.BN)
    for k in range(0, d.K, c.BK) do
      local y = a.B:tile({n, k}, {c.BN, c.BK})
      x = x + dot(a.A:tile({m, k}, {c.BM, c.BK}), y:T(), {prec = "tf32"})
    end
    a.C:store({m, n}, x)
  end,
}
-- What it rounds to, to the bit: whole numbers of 14 bits, of which tf32 holds 11, times 1. An
-- eighth of them are ties, which go up and down.
kernels.tf32_rounding = kernels.tf32:with {
  name = "tf32_rounding",
  oracle = function(t) return matmul(round(t.A / 8) * 8, t.B:T()) end,
  inputs = function(s, rng)
    local one = cast(eq(iota(0, s.N), iota(1, s.K)), f32)
    return {A = rng:int(8192, 16383, s.M, s.K) * (1 - 2 * rng:int(0, 1, s.M, s.K)), B = one}
  end,
  cases = {{shape = {M = 256, N = 64, K = 64}, set = {BM = 128, BN = 64, BK = 32},
            schedule = {warpgroups = 2}}},
}

-- An operand that is read as it was, too: not by the unit.
kernels.tf32_reused = kernel {
  name = "tf32_reused", tune = {BM = {64, 128}, BN = {64}, BK = {32}},
  cases = {{shape = {M = 64, N = 64, K = 96}}},
  args = {tensor("A", f32, "M", "K"), tensor("B", f32, "N", "K"), out("C", f32, "M", "N")},
  grid = function(d, c) return cdiv(d.M, c.BM), cdiv(d.N, c.BN) end,
  body = function(a, d, c, i, j)
    local m, n, x, sums = i * c.BM, j * c.BN, zeros(f32, c.BM, c.BN), zeros(f32, c.BM, 1)
    for k in range(0, d.K, c.BK) do
      local y, z = a.A:tile({m, k}, {c.BM, c.BK}), a.B:tile({n, k}, {c.BN, c.BK})
      x = x + dot(y, z:T(), {prec = "tf32"})
      sums = sums + rowsum(y)
    end
    a.C:store({m, n}, x + sums)
  end,
}

-- The nearest of N centres: a product in an inner loop, a maximum and its place in the outer one.
kernels.nearest = kernel {
  name = "nearest", const = {T = {bf16, f16}}, tune = tune, cases = shapes,
  args = {
    tensor("A", "T", "M", "K"), tensor("B", "T", "N", "K"), tensor("n", f32, "N"),
    out("I", s32, "M"), out("D", "T", "M"),
  },
  grid = function(d, c) return cdiv(d.M, c.BM) end,
  body = function(a, d, c, i)
    local best, at = full(f32, -inf, c.BM, 1), full(s32, 0, c.BM, 1)
    for j in range(0, d.N, c.BN) do
      local x = zeros(f32, c.BM, c.BN)
      for k in range(0, d.K, c.BK) do
        x = x + dot(a.A:tile({i * c.BM, k}, {c.BM, c.BK}), a.B:tile({j, k}, {c.BN, c.BK}):T())
      end
      x = where(j + iota(1, c.BN) < d.N, x * 2.0 - a.n:tile({j}, {c.BN}):row(), -inf)
      local most = rowmax(x)
      at = where(most > best, cast(j + argmax(x, 1), s32), at)
      best = max(best, most)
    end
    a.I:store({i * c.BM}, at:reshape(c.BM))
    a.D:store({i * c.BM}, cast(best, c.T):reshape(c.BM))
  end,
}

-- Attention: keys and values shared by the blocks of queries, where all see as many.
local heads = {B = 1, H = 3, G = 1, M = 200, N = 264, D = 64}
kernels.attention = require("kernels_ref.attention").attention:with {cases = {
  {shape = heads, const = {causal = false}, scalar = {scale = 0.25}, set = {BM = 64, BN = 64},
       schedule = {cluster = 2}},
}}
return kernels
