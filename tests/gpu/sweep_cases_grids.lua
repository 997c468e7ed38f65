-- Cases 7 and 9 of those that broke other systems (docs/cases.md): the order in which programs of a
-- grid are computed, and loops whose iterations are shared by several programs. All grids up to
-- 40 x 40 run on the emulator (tests/unit/test_emu_cases.c); here are the few that differ in kind.
-- kiln test tests/gpu/sweep_cases_grids.lua --root . --on gpu --exact

local groups = {1, 4, 8, 16}
local grids = {{1, 1}, {1, 40}, {40, 1}, {7, 9}, {17, 13}, {40, 40}}

-- ---- case 7: persistent and grouped raster ----

-- Every tile is counted once, whatever the order, and says which one it is.
local function counted(cases)
  return kernel {
    name = "case7_tiles",
    args = { inout("C", s32, "I", "J"), out("P", s32, "I", "J") },
    grid = function(d) return d.I, d.J end,
    body = function(a, d, c, i, j)
      a.C:atomic_add({i + iota(0, 1), j + iota(1, 1)}, 1)
      a.P:store({i, j}, cast(i * 1000 + j, s32))
    end,
    inputs = function(s) return {C = full(f32, 0, s.I, s.J)} end,
    oracle = function(t, d) return t.C + 1, iota(0, d.I) * 1000 + iota(1, d.J) end,
    cases = cases,
  }
end
local tiles = {}
for _, group in ipairs(groups) do
  for _, g in ipairs(grids) do
    tiles[#tiles + 1] = {shape = {I = g[1], J = g[2]}, schedule = {group = group}}
  end
end

-- C + 2 A B^T: a tile that is computed twice adds twice.
local function product(name, schedule, cases)
  return kernel {
    name = name,
    const = { T = {bf16, f16}, O = {f32, bf16} },
    args = { tensor("A", "T", "M", "K"), tensor("B", "T", "N", "K"), inout("C", "O", "M", "N") },
    tune = { BM = {64, 128}, BN = {64}, BK = {64} },
    grid = function(d, c) return cdiv(d.M, c.BM), cdiv(d.N, c.BN) end,
    body = function(a, d, c, i, j)
      local acc = zeros(f32, c.BM, c.BN)
      for k in range(0, d.K, c.BK) do
        acc = acc + dot(a.A:tile({i * c.BM, k}, {c.BM, c.BK}),
                        a.B:tile({j * c.BN, k}, {c.BN, c.BK}):T())
      end
      local C = a.C:tile({i * c.BM, j * c.BN}, {c.BM, c.BN})
      a.C:store({i * c.BM, j * c.BN}, cast(acc * 2 + cast(C, f32), c.O))
    end,
    oracle = function(t) return matmul(t.A, t.B:T()) * 2 + t.C end,
    inputs = function(s, rng) -- whole and small: every sum is exact, in bf16 too
      return {
        A = rng:int(-1, 2, s.M, s.K), B = rng:int(0, 2, s.N, s.K), C = rng:int(-3, 4, s.M, s.N),
      }
    end,
    schedule = schedule,
    cases = cases,
  }
end
local portable, persistent = {}, {}
for _, group in ipairs(groups) do
  for n, g in ipairs(grids) do
    if g[1] * g[2] < 300 or group == 8 then
      portable[#portable + 1] = {
        shape = {M = 16 * g[1] - n % 3, N = 16 * g[2], K = 16}, set = {BM = 16, BN = 16, BK = 16},
        schedule = {group = group}, seed = n,
      }
      persistent[#persistent + 1] = {
        shape = {M = 64 * g[1] - n % 3, N = 8 * g[2], K = 16}, set = {BM = 64, BN = 8, BK = 16},
        schedule = {group = group}, seed = n,
      }
    end
  end
end

-- Tiles that a cluster loads together: an even number along the axis, and an odd one.
for _, size in ipairs {2, 4} do
  for n, g in ipairs {{7, 9}, {17, 14}, {3, 40}} do
    persistent[#persistent + 1] = {
      shape = {M = 64 * g[1] - n, N = 8 * g[2], K = 16}, set = {BM = 64, BN = 8, BK = 16},
      schedule = {cluster = size, cluster_axis = 1}, seed = n,
    }
  end
end

-- ---- case 9: split-K ----

-- Small M and N, large K: by as many programs as asked for, more than there are iterations, too,
-- and by the rule.
local function split(path)
  local list = {}
  for _, parts in ipairs {1, 2, 3, 7, 16, 64, false} do
    for n, s in ipairs {{1, 8, 4096}, {17, 72, 1000}, {64, 8, 64}, {130, 136, 2056}} do
      list[#list + 1] = {
        shape = {M = s[1], N = s[2], K = s[3]}, seed = #list + 1,
        const = {T = n % 2 == 0 and f16 or bf16},
        schedule = {split_k = parts or nil}, set = path,
      }
    end
  end
  return list
end

return {
  case7_tiles = counted(tiles),
  case7_products = product("case7_products", {warpgroups = 0}, portable),
  case7_persistent = product("case7_persistent", {warpgroups = 1}, persistent),
  case9_split_k = product("case9_split_k", {warpgroups = 0}, split {BM = 64, BN = 64, BK = 32}),
  case9_split_k_warpgroups =
    product("case9_split_k_warpgroups", {warpgroups = 1}, split {BM = 64, BN = 64, BK = 64}),
}
