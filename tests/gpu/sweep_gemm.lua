-- Sweeps of the shipped matrix product over what broke others: tails in M, N and K, every layout,
-- odd strides, every dtype, with and without epilogue operands. Run with `--root .` from the source
-- folder: kiln test tests/gpu/sweep_gemm.lua --root . --on gpu --exact

local family = require "kernels_ref.gemm"

local none = {"bias", "R"}
local cases = {}
local function add(c) cases[#cases + 1] = c c.seed = #cases end

-- K tails by BK (cases.md row 2), in each dtype
for _, T in ipairs {bf16, f16, f32} do
  for _, K in ipairs {0, 1, 8, 24, 31, 63, 250, 1001} do
    add {shape = {M = 64, N = 96, K = K}, const = {T = T}, absent = none}
  end
end
for _, BK in ipairs {16, 32, 64, 128} do
  for _, K in ipairs {1, 31, 63, 250} do
    add {shape = {M = 40, N = 72, K = K}, set = {BK = BK, BM = 64, BN = 64}, absent = none}
  end
end
-- M and N tails (row 3)
for _, M in ipairs {0, 1, 7, 16, 17, 119, 1000} do
  for _, N in ipairs {63, 104, 192, 229, 257, 511, 999} do
    add {shape = {M = M, N = N, K = 72}, absent = none}
  end
end
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
-- strides that are no multiple of 16 bytes, broadcast rows, a column-major output (rows 4, 5)
add {shape = {M = 100, N = 96, K = 64}, stride = {A = {65, 1}, B = {66, 1}}, absent = none}
add {shape = {M = 100, N = 96, K = 64}, stride = {A = {72, 1}, B = {68, 1}}, absent = none}
add {shape = {M = 100, N = 96, K = 64}, stride = {A = {0, 1}}, absent = none}
add {shape = {M = 100, N = 96, K = 64}, stride = {A = {130, 2}, B = {200, 3}}, absent = none}
add {shape = {M = 100, N = 97, K = 64}, stride = {C = {99, 1}}, absent = none}
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
