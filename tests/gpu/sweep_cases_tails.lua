-- Cases 2 and 3 of those that broke other systems (docs/cases.md): products whose K, M or N is no
-- multiple of the tile's, down to nothing, by every path that a product can take.
-- kiln test tests/gpu/sweep_cases_tails.lua --root . --on gpu --exact

-- 2 A B^T + 3: K = 0 gives what the epilogue makes of zero.
local function product(name, O, schedule, cases)
  return kernel {
    name = name,
    const = { T = {bf16, f16, f32, e4m3, s8, f64} },
    args = { tensor("A", "T", "M", "K"), tensor("B", "T", "N", "K"), out("C", O, "M", "N") },
    tune = { BM = {64, 128}, BN = {64}, BK = {64} },
    grid = function(d, c) return cdiv(d.M, c.BM), cdiv(d.N, c.BN) end,
    body = function(a, d, c, i, j)
      local acc = zeros(c.T == s8 and s32 or c.T == f64 and f64 or f32, c.BM, c.BN)
      for k in range(0, d.K, c.BK) do
        acc = acc + dot(a.A:tile({i * c.BM, k}, {c.BM, c.BK}),
                        a.B:tile({j * c.BN, k}, {c.BN, c.BK}):T())
      end
      a.C:store({i * c.BM, j * c.BN}, cast(acc * 2 + 3, O))
    end,
    oracle = function(t) return matmul(t.A, t.B:T()) * 2 + 3 end,
    inputs = function(s, rng, c) -- whole and small: every sum is exact
      return {A = rng:int(-2, 3, s.M, s.K), B = rng:int(-2, 3, s.N, s.K)}
    end,
    schedule = schedule,
    cases = cases,
  }
end

local Ks = {0, 1, 8, 24, 31, 63, 250, 1001}
local BKs = {16, 24, 32, 40, 48, 56, 64, 80, 128}

-- case 2: K tails; one iteration, and fewer iterations than slots
local function k_tails(add)
  for _, BK in ipairs(BKs) do
    for _, K in ipairs(Ks) do add(bf16, BK, K) end
  end
  for n, T in ipairs {f16, f32, e4m3, s8, f64} do
    for _, K in ipairs(Ks) do add(T, n % 2 == 0 and 32 or 64, K) end
  end
  for _, stages in ipairs {1, 2, 5} do
    for _, K in ipairs {1, 64, 65, 128, 193} do add(bf16, 64, K, stages) end
  end
end
local function k_cases(floats)
  local list = {}
  k_tails(function(T, BK, K, stages)
    if (T ~= s8) == floats then
      list[#list + 1] = {
        shape = {M = 72, N = 40, K = K}, const = {T = T}, seed = #list + 1,
        set = {BM = 64, BN = 64, BK = BK}, schedule = {stages = stages},
      }
    end
  end)
  return list
end

-- The unit that feeds warpgroups takes rows of whole 16-byte units alone.
local k_warpgroups = {}
for _, BK in ipairs {16, 32, 48, 64, 80, 96, 128} do
  for _, K in ipairs {8, 16, 24, 64, 72, 120, 248, 1000} do
    k_warpgroups[#k_warpgroups + 1] = {
      shape = {M = 72, N = 40, K = K}, const = {T = K % 3 == 0 and f16 or bf16},
      set = {BM = 64, BN = 64, BK = BK}, seed = #k_warpgroups + 1,
    }
  end
end
for _, stages in ipairs {1, 2, 5} do
  for _, K in ipairs {8, 64, 72, 128, 136, 504} do
    k_warpgroups[#k_warpgroups + 1] = {
      shape = {M = 128, N = 72, K = K}, const = {T = bf16}, seed = #k_warpgroups + 1,
      set = {BM = 128, BN = 64, BK = 64}, schedule = {warpgroups = 2, stages = stages},
    }
  end
end

-- case 3: M and N tails
local function mn_cases(BM, BN, BK, K, schedule)
  local list = {}
  for _, M in ipairs {0, 1, 7, 16, 17, 119, 1000} do
    for _, N in ipairs {63, 104, 192, 229, 257, 511, 999} do
      -- No map is made of an argument without elements.
      if M > 0 or not schedule then
        list[#list + 1] = {
          shape = {M = M, N = N, K = K}, const = {T = bf16}, seed = #list + 1,
          set = {BM = BM, BN = BN, BK = BK}, schedule = schedule,
        }
      end
    end
  end
  for _, N in ipairs {0, 1, 8} do
    list[#list + 1] = {
      shape = {M = 17, N = N, K = K}, const = {T = bf16}, seed = #list + 1,
      set = {BM = BM, BN = BN, BK = BK}, schedule = N > 0 and schedule or nil,
    }
  end
  return list
end

return {
  case2_k_tails = product("case2_k_tails", f32, {warpgroups = 0}, k_cases(true)),
  case2_k_tails_s8 = product("case2_k_tails_s8", s32, {warpgroups = 0}, k_cases(false)),
  case2_k_tails_warpgroups =
    product("case2_k_tails_warpgroups", bf16, {warpgroups = 1}, k_warpgroups),
  case3_mn_tails = product("case3_mn_tails", bf16, {warpgroups = 0}, mn_cases(64, 64, 32, 40)),
  case3_mn_tails_warpgroups =
    product("case3_mn_tails_warpgroups", bf16, nil, mn_cases(128, 64, 64, 72, {warpgroups = 2})),
}
