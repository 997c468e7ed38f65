-- Cases 4 and 5 of those that broke other systems (docs/cases.md): stores whose rows are no whole
-- number of 16-byte units, between guard columns and guard bands, and views that the tensor memory
-- unit does not take. What lies outside of a view is poisoned and must stay as it is.
-- kiln test tests/gpu/sweep_cases_memory.lua --root . --on gpu --exact

local kernels = {}

-- ---- case 4: stores past the edge ----

local all = {f64, f32, f16, bf16, e4m3, e5m2, s64, s32, s8, u8, bool, s4, u4}
local bits = {
  [f64] = 64, [f32] = 32, [f16] = 16, [bf16] = 16, [e4m3] = 8, [e5m2] = 8, [s64] = 64, [s32] = 32,
  [s8] = 8, [u8] = 8, [bool] = 8, [s4] = 4, [u4] = 4,
}

-- Rows that end anywhere in a unit of 16 bytes; guard columns that end there, too.
local function edges(T, add)
  local unit = 128 // bits[T]
  local even = bits[T] < 8 and 2 or 1 -- a byte of two elements has one owner
  local ends = {1, unit - 1, unit, unit + 1, 2 * unit + unit // 2, 3 * unit - 1, 4 * unit, 67}
  for n, N in ipairs(ends) do
    N = (N + even - 1) // even * even
    local gap = ({0, 1, unit, unit // 2, 3})[n % 5 + 1] // even * even
    add {shape = {M = 5, N = N}, stride = {Y = {N + gap, 1}},
         offset = {Y = n % 3 == 0 and even or n % 3 == 1 and unit or 0}}
  end
end

local function copies(cols)
  local list = {}
  for _, T in ipairs(all) do
    edges(T, function(c)
      c.const, c.seed = {T = T}, #list + 1
      c.set = {BN = cols(T)}
      list[#list + 1] = c
    end)
  end
  return list
end

local function copy(name, cases)
  return kernel {
    name = name,
    const = { T = all },
    args = { tensor("X", "T", "M", "N"), out("Y", "T", "M", "N") },
    tune = { BM = {4}, BN = {64} },
    grid = function(d, c) return cdiv(d.M, c.BM), cdiv(d.N, c.BN) end,
    body = function(a, d, c, i, j)
      a.Y:store({i * c.BM, j * c.BN}, a.X:tile({i * c.BM, j * c.BN}, {c.BM, c.BN}))
    end,
    inputs = function(s, rng, c)
      return {X = c.T == bool and rng:int(0, 2, s.M, s.N) or rng:int(0, 8, s.M, s.N)}
    end,
    oracle = function(t) return t.X + 0 end,
    cases = cases,
  }
end
kernels.case4_stores = copy("case4_stores", copies(function() return 64 end))
-- tiles narrower than a unit
kernels.case4_stores_narrow =
  copy("case4_stores_narrow", copies(function(T) return bits[T] < 8 and 4 or 2 end))

-- Results of products, in each width: from registers, through shared memory, by the unit.
local function product(name, cases, O)
  return kernel {
    name = name,
    const = { T = {bf16, f16, f32}, O = {f32, f16, bf16, e4m3, e5m2, f64, s8, s32} },
    args = { tensor("A", "T", "M", "K"), tensor("B", "T", "N", "K"), out("C", "O", "M", "N") },
    tune = { BM = {64, 128}, BN = {64}, BK = {32} },
    grid = function(d, c) return cdiv(d.M, c.BM), cdiv(d.N, c.BN) end,
    body = function(a, d, c, i, j)
      local acc = zeros(f32, c.BM, c.BN)
      for k in range(0, d.K, c.BK) do
        acc = acc + dot(a.A:tile({i * c.BM, k}, {c.BM, c.BK}),
                        a.B:tile({j * c.BN, k}, {c.BN, c.BK}):T())
      end
      a.C:store({i * c.BM, j * c.BN}, cast(acc, c.O))
    end,
    oracle = function(t) return matmul(t.A, t.B:T()) end,
    inputs = function(s, rng, c) -- few and small: sums are values of 8-bit types, too
      return {A = rng:int(-1, 2, s.M, s.K), B = rng:int(-1, 2, s.N, s.K)}
    end,
    cases = cases,
  }
end

local by_registers, by_shared, by_unit = {}, {}, {}
for _, O in ipairs {f32, bf16, e4m3, s8, f64} do
  local unit = 128 // bits[O]
  for n, N in ipairs {unit - 1, 64, 64 + unit, 65, 3 * unit} do
    for g, gap in ipairs {0, 1, unit} do
      if (n + g) % 2 == 0 or gap == unit then
        for store, list in ipairs {by_registers, by_shared, by_unit} do
          local groups = store == 3
          list[#list + 1] = {
            shape = {M = 70, N = N, K = 8}, const = {O = O}, seed = #list + 1,
            stride = {C = {N + gap, 1}}, offset = {C = g == 2 and n or 0},
            schedule = groups and {warpgroups = 1} or {warpgroups = 0, store = store - 1},
          }
        end
      end
    end
  end
end
kernels.case4_stores_of_products = product("case4_stores_of_products", by_registers)
kernels.case4_stores_staged = product("case4_stores_staged", by_shared)
kernels.case4_stores_warpgroups = product("case4_stores_warpgroups", by_unit)

-- ---- case 5: views that the tensor memory unit does not take ----

-- By the path that is taken where none is asked for.
local views = {}
local function add(c)
  c.seed, c.const, c.set = #views + 1, {T = #views % 3 == 2 and f16 or bf16, O = f32}, {BM = 64}
  views[#views + 1] = c
end
-- rows that are no multiple of 16 bytes apart; that do not end there; shorter than that
for _, step in ipairs {64, 65, 66, 68, 72} do
  add {shape = {M = 40, N = 24, K = 64}, stride = {A = {step, 1}, B = {136 - step, 1}}}
end
for _, K in ipairs {1, 2, 4, 7, 9, 12, 20} do add {shape = {M = 40, N = 24, K = K}} end
-- a base off alignment by 2, 4 and 8 bytes, and by 16
for _, off in ipairs {1, 2, 4, 8} do
  add {shape = {M = 40, N = 24, K = 64}, offset = {A = off}}
  add {shape = {M = 40, N = 24, K = 64}, offset = {B = off}}
  add {shape = {M = 40, N = 24, K = 64}, offset = {C = off}}
end
-- strides of 0 and below, elements apart, columns together
for _, s in ipairs {{0, 1}, {-64, 1}, {64, -1}, {-72, 1}, {-65, -1}, {128, 2}, {1, 40}, {1, 41},
                    {-1, 40}, {0, 0}, {1, 0}} do
  add {shape = {M = 40, N = 40, K = 64}, stride = {A = s}}
  add {shape = {M = 40, N = 40, K = 64}, stride = {B = s}}
end
for _, s in ipairs {{-64, 1}, {64, -1}, {-1, -40}, {1, 40}, {100, 2}} do
  add {shape = {M = 40, N = 40, K = 64}, stride = {C = s}}
end
kernels.case5_views = product("case5_views", views)

-- Rank 1 to 5: the last dims are a tile's.
local function ranked(rank)
  local dims = {"B1", "B2", "B3", "M", "N"}
  local names, last = {}, {}
  for d = 6 - rank, 5 do names[#names + 1] = dims[d] end
  return kernel {
    name = "case5_rank" .. rank,
    const = { T = {bf16, f32, s8} },
    args = { tensor("X", "T", table.unpack(names)), out("Y", "T", table.unpack(names)) },
    grid = function(d)
      local outer = 1
      for k = 1, rank - 2 do outer = outer * d[names[k]] end
      return cdiv(d.N, 32), rank > 1 and cdiv(d.M, 8) or 1, outer
    end,
    body = function(a, d, c, j, i, b)
      local x, y = a.X, a.Y
      if rank == 1 then
        y:store({j * 32}, x:tile({j * 32}, {32}))
      else
        local at = {}
        for k = rank - 2, 1, -1 do
          at[k] = b % d[names[k]]
          b = b // d[names[k]]
        end
        for k = 1, rank - 2 do x, y = x:at(at[k]), y:at(at[k]) end
        y:store({i * 8, j * 32}, x:tile({i * 8, j * 32}, {8, 32}))
      end
    end,
    oracle = function(t) return t.X + 0 end,
    inputs = function(s, rng)
      local sizes = {}
      for k = 1, rank do sizes[k] = s[names[k]] end
      return {X = rng:int(-4, 5, table.unpack(sizes))}
    end,
    cases = (function()
      local list = {}
      for n, T in ipairs {bf16, f32, s8} do
        for k, N in ipairs {3, 32, 40, 61} do
          local shape = {}
          for q = 1, rank do shape[names[q]] = q + 1 end
          shape[names[rank]] = N
          list[#list + 1] = {
            shape = shape, const = {T = T}, seed = #list + 1,
            layout = {[k % 2 == 0 and "X" or "Y"] = n == k and "col" or "row"},
            offset = {[n % 2 == 0 and "X" or "Y"] = k - 1},
          }
        end
      end
      return list
    end)(),
  }
end
for rank = 1, 5 do kernels["case5_rank" .. rank] = ranked(rank) end
return kernels
