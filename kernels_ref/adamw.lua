-- One step of AdamW, fused and in place: P, M and V (parameters and moments, f32) and G (gradients)
-- are [N]; W is the parameters in the dtype that the model computes with. `scale` multiplies the
-- gradients (clipping, loss scale); c1 and c2 are the bias corrections 1 - beta1^t and 1 - beta2^t.

local usual = {
  lr = 1e-3, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, decay = 0.1, scale = 0.5, c1 = 0.1, c2 = 0.05,
}

local damped = {
  lr = 0.1, beta1 = 0.5, beta2 = 0.9, eps = 0.25, decay = 0, scale = 1, c1 = 0.75, c2 = 0.19,
}

return kernel {
  name = "adamw",
  const = { T = {bf16, f16}, GT = {bf16, f16, f32} },
  args = {
    inout("P", f32, "N"), inout("M", f32, "N"), inout("V", f32, "N"), out("W", "T", "N"),
    tensor("G", "GT", "N"), scalar("lr", f32), scalar("beta1", f32), scalar("beta2", f32),
    scalar("eps", f32), scalar("decay", f32), scalar("scale", f32), scalar("c1", f32),
    scalar("c2", f32),
  },
  tune = { B = {2048, 1024, 4096} },
  grid = function(d, c) return cdiv(d.N, c.B) end,
  body = function(a, d, c, i)
    local at, size = {i * c.B}, {c.B}
    local p, m, v = a.P:tile(at, size), a.M:tile(at, size), a.V:tile(at, size)
    local g = cast(a.G:tile(at, size), f32) * a.scale
    m, v = m + (g - m) * (1 - a.beta1), v + (g * g - v) * (1 - a.beta2)
    p = p - a.lr * (a.decay * p + m / a.c1 / (sqrt(v / a.c2) + a.eps))
    a.P:store(at, p)
    a.M:store(at, m)
    a.V:store(at, v)
    a.W:store(at, cast(p, c.T))
  end,
  oracle = function(t)
    local g = t.G * t.scale
    local m = t.beta1 * t.M + (1 - t.beta1) * g
    local v = t.beta2 * t.V + (1 - t.beta2) * g * g
    local p = (1 - t.lr * t.decay) * t.P - t.lr * (m / t.c1) / (sqrt(v / t.c2) + t.eps)
    return p, m, v, p
  end,
  inputs = function(s, rng) return {V = rng:uniform(0, 1, s.N)} end,
  cases = {
    {shape = {N = 5000}, scalar = usual},
    {shape = {N = 2048}, const = {T = f16, GT = f32}, scalar = usual, seed = 1},
    {shape = {N = 2049}, const = {GT = f16}, scalar = usual, set = {B = 1024}, seed = 2},
    {shape = {N = 300}, scalar = damped, seed = 4}, {shape = {N = 1}, scalar = usual, seed = 3},
    {shape = {N = 0}, scalar = usual},
  },
}
