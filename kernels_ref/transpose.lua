-- Copies in another order: memory-bound, one read and one write of each element.

local bytes = {[bf16] = 2, [f16] = 2, [f32] = 4, [e4m3] = 1, [s8] = 1, [s32] = 4, [s64] = 8}

return {
  -- Y = X^T: X is [M, N], Y is [N, M]. Rows of 256 bytes on both sides are best (0.92 of a copy,
  -- those of 128 bytes 0.88); longer ones take shared memory that other tiles could be in.
  transpose = kernel {
    name = "transpose",
    const = { T = {bf16, f16, f32, e4m3, s8, s32, s64} },
    args = { tensor("X", "T", "M", "N"), out("Y", "T", "N", "M") },
    tune = { BM = {128, 64, 32, 256}, BN = {128, 64, 32, 256} },
    legal = function(c) return c.BM * bytes[c.T] <= 256 and c.BN * bytes[c.T] <= 256 end,
    grid = function(d, c) return cdiv(d.M, c.BM), cdiv(d.N, c.BN) end,
    body = function(a, d, c, i, j)
      local m, n = i * c.BM, j * c.BN
      a.Y:store({n, m}, a.X:tile({m, n}, {c.BM, c.BN}):T())
    end,
    oracle = function(t) return t.X:T() end,
    cases = {
      {shape = {M = 128, N = 64}}, {shape = {M = 65, N = 130}, const = {T = f32}, seed = 1},
      {shape = {M = 1, N = 100}, const = {T = e4m3}}, {shape = {M = 100, N = 1}, const = {T = s8}},
      {shape = {M = 33, N = 71}, const = {T = s64}, set = {BM = 32}, layout = {X = "col"}},
      {shape = {M = 40, N = 50}, const = {T = s32}, stride = {X = {53, 1}}, layout = {Y = "col"}},
      {shape = {M = 0, N = 5}}, {shape = {M = 5, N = 0}, const = {T = f16}},
    },
  },

  -- Y[b, h, s, :] = X[b, s, h, :]: heads of a sequence, [B, S, H, D] to [B, H, S, D].
  split_heads = kernel {
    name = "split_heads",
    const = { T = {bf16, f16, f32}, D = {128, any} },
    args = { tensor("X", "T", "B", "S", "H", "D"), out("Y", "T", "B", "H", "S", "D") },
    tune = { BS = {16, 8, 32}, BH = {4, 1, 2, 8} },
    grid = function(d, c) return cdiv(d.S, c.BS), cdiv(d.H, c.BH), d.B end,
    body = function(a, d, c, i, j, b)
      local s, h = i * c.BS, j * c.BH
      local x = a.X:at(b):tile({s, h, 0}, {c.BS, c.BH, c.D})
      a.Y:at(b):store({h, s, 0}, x:permute(1, 0, 2))
    end,
    oracle = function(t) return t.X:permute(0, 2, 1, 3) end,
    cases = {
      {shape = {B = 2, S = 17, H = 4, D = 128}},
      {shape = {B = 1, S = 33, H = 3, D = 65}, const = {T = f32}, seed = 1},
      {shape = {B = 3, S = 1, H = 9, D = 7}, const = {T = f16}, seed = 2},
      {shape = {B = 2, S = 0, H = 4, D = 8}},
    },
  },
}
