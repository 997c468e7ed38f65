-- Elementwise kernels: memory-bound, one read of each input and one write of the output. 16-bit
-- inputs compute in f32 and round once.

local T = {bf16, f16, f32}

return {
  -- Y = X + Z, flat: X, Z, Y are [N].
  vector_add = kernel {
    name = "vector_add",
    const = { T = T },
    args = { tensor("X", "T", "N"), tensor("Z", "T", "N"), out("Y", "T", "N") },
    tune = { B = {4096, 1024, 2048, 8192} },
    grid = function(d, c) return cdiv(d.N, c.B) end,
    body = function(a, d, c, i)
      local x, z = a.X:tile({i * c.B}, {c.B}), a.Z:tile({i * c.B}, {c.B})
      a.Y:store({i * c.B}, cast(cast(x, f32) + cast(z, f32), c.T))
    end,
    oracle = function(t) return t.X + t.Z end,
    cases = {
      {shape = {N = 10000}}, {shape = {N = 4096}, const = {T = f16}, seed = 1},
      {shape = {N = 1}, const = {T = f32}, seed = 2}, {shape = {N = 0}},
      {shape = {N = 4097}, seed = 3},
    },
  },

  -- Y = silu(G) * U, the gate of a SwiGLU MLP: G, U, Y are [M, N].
  swiglu = kernel {
    name = "swiglu",
    const = { T = T },
    args = { tensor("G", "T", "M", "N"), tensor("U", "T", "M", "N"), out("Y", "T", "M", "N") },
    tune = { BM = {4, 1, 8, 16}, BN = {1024, 512, 2048} },
    grid = function(d, c) return cdiv(d.M, c.BM), cdiv(d.N, c.BN) end,
    body = function(a, d, c, i, j)
      local at, size = {i * c.BM, j * c.BN}, {c.BM, c.BN}
      local g, u = cast(a.G:tile(at, size), f32), cast(a.U:tile(at, size), f32)
      a.Y:store(at, cast(silu(g) * u, c.T))
    end,
    oracle = function(t) return silu(t.G) * t.U end,
    cases = {
      {shape = {M = 33, N = 1000}}, {shape = {M = 8, N = 2048}, const = {T = f16}, seed = 1},
      {shape = {M = 7, N = 130}, const = {T = f32}, layout = {U = "col"}, seed = 2},
    },
  },

  -- Y = bf16(alpha * X): X is f32 [M, N].
  scale_to_bf16 = kernel {
    name = "scale_to_bf16",
    args = { tensor("X", f32, "M", "N"), scalar("alpha", f32), out("Y", bf16, "M", "N") },
    tune = { BM = {4, 1, 8, 16}, BN = {1024, 512, 2048} },
    grid = function(d, c) return cdiv(d.M, c.BM), cdiv(d.N, c.BN) end,
    body = function(a, d, c, i, j)
      local at = {i * c.BM, j * c.BN}
      a.Y:store(at, cast(a.X:tile(at, {c.BM, c.BN}) * a.alpha, bf16))
    end,
    oracle = function(t) return t.X * t.alpha end,
    cases = {
      {shape = {M = 16, N = 512}, scalar = {alpha = 0.5}},
      {shape = {M = 5, N = 333}, scalar = {alpha = -3.0}, layout = {X = "col"}, seed = 1},
    },
  },
}
