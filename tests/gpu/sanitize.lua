-- One small odd shape per kernel and dtype, for compute-sanitizer.
local family = require "kernels_ref.gemm"
local softmax, rmsnorm = require "kernels_ref.softmax", require "kernels_ref.rmsnorm"
local elementwise = require "kernels_ref.elementwise"

local function each(shape, more)
  local cases = {}
  for _, T in ipairs {bf16, f16, f32} do
    local c = {shape = shape, const = {T = T}, seed = #cases + 1}
    for k, v in pairs(more or {}) do c[k] = v end
    cases[#cases + 1] = c
  end
  return cases
end

local products = each {M = 131, N = 77, K = 71}
for _, c in ipairs(each({M = 129, N = 136, K = 72}, {layout = {A = "col", B = "col"}})) do
  products[#products + 1] = c
end
products[#products + 1] = {shape = {M = 160, N = 144, K = 200}, absent = {"bias", "R"}}

return {
  gemm = family.gemm:with {cases = products},
  gemm_gelu = family.gemm_gelu:with {cases = each {M = 35, N = 49, K = 33}},
  gemm_gelu_tanh = family.gemm_gelu_tanh:with {cases = each {M = 35, N = 49, K = 33}},
  gemm_relu = family.gemm_relu:with {cases = each {M = 35, N = 49, K = 33}},
  gemm_silu = family.gemm_silu:with {cases = each {M = 35, N = 49, K = 33}},
  softmax = softmax:with {cases = each {M = 5, N = 1001}},
  rmsnorm = rmsnorm:with {cases = each({M = 5, N = 1001}, {scalar = {eps = 1e-5}})},
  vector_add = elementwise.vector_add:with {cases = each {N = 4099}},
  swiglu = elementwise.swiglu:with {cases = each {M = 9, N = 1030}},
  scale_to_bf16 = elementwise.scale_to_bf16,
}
