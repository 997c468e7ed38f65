-- Products of every dtype the matrix unit takes: each with every order of its operands in memory,
-- with tails and odd strides, and with operands computed from what is loaded.
-- kiln test tests/gpu/sweep_dots.lua --root . --on gpu --exact

-- T: the operands', O: the accumulator's and the result's dtype. computed: -A . -B^T.
local function product(name, prec, types, computed)
  return kernel {
    name = name,
    const = types,
    args = { tensor("A", "T", "M", "K"), tensor("B", "U", "N", "K"), out("C", "O", "M", "N") },
    tune = { BM = {64, 128}, BN = {64, 128}, BK = {64, 32, 16} },
    grid = function(d, c) return cdiv(d.M, c.BM), cdiv(d.N, c.BN) end,
    body = function(a, d, c, i, j)
      local m, n = i * c.BM, j * c.BN
      local acc = zeros(c.O, c.BM, c.BN)
      for k in range(0, d.K, c.BK) do
        local x, y = a.A:tile({m, k}, {c.BM, c.BK}), a.B:tile({n, k}, {c.BN, c.BK})
        if computed then x, y = -x, -y end
        acc = dot(x, y:T(), acc, prec and {prec = prec})
      end
      a.C:store({m, n}, acc)
    end,
    oracle = function(t) return matmul(t.A, t.B:T()) end,
    inputs = function(s, rng, c) -- whole and small: every sum is exact
      local least = c.T == u8 and 0 or -3
      return {A = rng:int(least, 4, s.M, s.K), B = rng:int(least, 4, s.N, s.K)}
    end,
    cases = {},
  }
end

local shapes = {
  {M = 128, N = 128, K = 256}, {M = 129, N = 67, K = 33}, {M = 1, N = 200, K = 70},
  {M = 80, N = 96, K = 0}, {M = 65, N = 63, K = 250},
}
local function cases(T, U, O)
  local list = {}
  local function add(c)
    c.const, c.seed = {T = T, U = U, O = O}, #list
    list[#list + 1] = c
  end
  for _, s in ipairs(shapes) do
    for _, A in ipairs {"row", "col"} do
      for _, B in ipairs {"row", "col"} do add {shape = s, layout = {A = A, B = B}} end
    end
  end
  add {shape = {M = 100, N = 96, K = 64}, stride = {A = {66, 1}, B = {80, 1}}}
  add {shape = {M = 100, N = 96, K = 64}, stride = {A = {130, 2}, C = {98, 1}}}
  for _, b in ipairs {{16, 8, 16}, {48, 96, 32}, {80, 112, 48}, {128, 128, 64}} do
    add {shape = {M = 200, N = 210, K = 100}, set = {BM = b[1], BN = b[2], BK = b[3]}}
  end
  return list
end

local out = {}
local function family(name, T, U, O, prec)
  local types = {T = {T}, U = {U}, O = {O}}
  out[name] = product(name, prec, types):with {cases = cases(T, U, O)}
  if T ~= e4m3 and T ~= e5m2 and T ~= u8 then
    local n = name .. "_computed"
    out[n] = product(n, prec, types, true):with {cases = cases(T, U, O)}
  end
end
family("dot_bf16", bf16, bf16, f32)
family("dot_f16", f16, f16, f32)
family("dot_f32", f32, f32, f32)
family("dot_tf32", f32, f32, f32, "tf32")
family("dot_tf32x3", f32, f32, f32, "tf32x3")
family("dot_f64", f64, f64, f64)
family("dot_s8", s8, s8, s32)
family("dot_u8", u8, u8, s32)
family("dot_e4m3", e4m3, e4m3, f32)
family("dot_e5m2", e5m2, e5m2, f32)
family("dot_e4m3_e5m2", e4m3, e5m2, f32)
family("dot_e5m2_e4m3", e5m2, e4m3, f32)
return out
