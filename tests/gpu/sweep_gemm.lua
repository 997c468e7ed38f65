-- Sweeps of the shipped matrix product: every layout and dtype, with and without epilogue operands;
-- tails and strides are in sweep_cases_tails.lua and sweep_cases_memory.lua. Run with `--root .`
-- from the source folder: kiln test tests/gpu/sweep_gemm.lua --root . --on gpu --exact

local family = require "kernels_ref.gemm"

local none = {"bias", "R"}
local cases = {}
local function add(c) cases[#cases + 1] = c c.seed = #cases end

-- layouts and dtypes, even and odd
for _, T in ipairs {bf16, f16, f32} do
  for _, A in ipairs {"row", "col"} do
    for _, B in ipairs {"row", "col"} do
      for _, s in ipairs {
        {M = 256, N = 256, K = 128}, {M = 129, N = 131, K = 67}, {M = 136, N = 120, K = 72},
      } do
        add {shape = s, const = {T = T}, layout = {A = A, B = B}}
      end
    end
  end
end
-- a residual and a result in other orders
add {shape = {M = 100, N = 96, K = 64}, layout = {C = "col"}, absent = none}
add {shape = {M = 100, N = 96, K = 64}, layout = {R = "col", C = "col"}}
-- tile sizes that are no powers of two
for _, b in ipairs {{48, 96, 32}, {80, 112, 48}, {96, 64, 80}, {16, 16, 16}, {32, 192, 64}} do
  add {shape = {M = 200, N = 210, K = 190}, set = {BM = b[1], BN = b[2], BK = b[3]}, absent = none}
end

local out = {gemm = family.gemm:with {cases = cases}}
local few = {
  {shape = {M = 128, N = 256, K = 192}},
  {shape = {M = 77, N = 91, K = 53}, const = {T = f16}, seed = 1},
  {shape = {M = 130, N = 70, K = 40}, const = {T = f32}, seed = 2},
}
for name, k in pairs(family) do
  if name ~= "gemm" then out[name] = k:with {cases = few} end
end
return out
