-- Sweeps of the row kernels and elementwise kernels over lengths, dtypes and layouts.
-- kiln test tests/gpu/sweep_rows.lua --root . --on gpu

local softmax, rmsnorm = require "kernels_ref.softmax", require "kernels_ref.rmsnorm"
local elementwise = require "kernels_ref.elementwise"

local function rows(extra)
  local cases = {}
  local function add(M, N, T, layout)
    local c = {shape = {M = M, N = N}, const = {T = T}, layout = layout, seed = #cases + 1}
    for k, v in pairs(extra) do c[k] = v end
    cases[#cases + 1] = c
  end
  for _, T in ipairs {bf16, f16, f32} do
    for _, N in ipairs {1, 7, 32, 63, 128, 257, 1000, 1024, 4096, 5120, 8192} do add(17, N, T) end
    add(33, 96, T, {X = "col"})
    add(33, 97, T, {Y = "col"})
  end
  add(0, 64, bf16)
  add(1, 16384, bf16)
  add(3, 32768, bf16)
  return cases
end

local flat = {}
for _, T in ipairs {bf16, f16, f32} do
  for _, N in ipairs {0, 1, 31, 4095, 4096, 4097, 1000003} do
    flat[#flat + 1] = {shape = {N = N}, const = {T = T}, seed = #flat + 1}
  end
end
flat[#flat + 1] = {shape = {N = 5000}, stride = {X = {3}}, seed = 99}
flat[#flat + 1] = {shape = {N = 5000}, stride = {X = {0}, Y = {2}}, seed = 98}

local planes = {}
for _, T in ipairs {bf16, f16, f32} do
  for _, s in ipairs {{M = 1, N = 1}, {M = 37, N = 1025}, {M = 64, N = 2048}, {M = 5, N = 333}} do
    planes[#planes + 1] = {shape = s, const = {T = T}, seed = #planes + 1}
    planes[#planes + 1] = {shape = s, const = {T = T}, layout = {G = "col"}, seed = #planes + 1}
  end
end

return {
  softmax = softmax:with {cases = rows {}},
  rmsnorm = rmsnorm:with {cases = rows {scalar = {eps = 1e-5}}},
  vector_add = elementwise.vector_add:with {cases = flat},
  swiglu = elementwise.swiglu:with {cases = planes},
  scale_to_bf16 = elementwise.scale_to_bf16,
}
