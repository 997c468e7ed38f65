-- Rows of a table by number, and the gradient of the table.

local T = {bf16, f16, f32}

local function inputs(s, rng) return {I = rng:int(-1, s.V, s.N)} end

return {
  -- Y[n, :] = E[I[n], :]: E is [V, D], I is [N], Y is [N, D]. Numbers outside of the table give 0.
  embedding = kernel {
    name = "embedding",
    const = { T = T, IT = {s32, s64} },
    args = { tensor("E", "T", "V", "D"), tensor("I", "IT", "N"), out("Y", "T", "N", "D") },
    tune = { BN = {8, 4, 16}, BD = {512, 256, 1024} },
    grid = function(d, c) return cdiv(d.N, c.BN), cdiv(d.D, c.BD) end,
    body = function(a, d, c, i, j)
      local n, col = i * c.BN, j * c.BD
      local id = a.I:tile({n}, {c.BN}):col()
      a.Y:store({n, col}, a.E:gather({id, col + iota(1, c.BD)}))
    end,
    oracle = function(t, d) return t.E:gather({t.I:col(), iota(1, d.D)}) end,
    inputs = inputs,
    cases = {
      {shape = {V = 100, D = 512, N = 37}},
      {shape = {V = 33, D = 1025, N = 9}, const = {T = f32, IT = s64}, layout = {E = "col"},
       seed = 1},
      {shape = {V = 1, D = 7, N = 8}, const = {T = f16}, seed = 2}, {shape = {V = 5, D = 8, N = 0}},
    },
  },

  -- S[I[n], :] += G[n, :]: G is [N, D], S is [V, D], f32. Equal numbers add up, in any order;
  -- those outside of the table are passed over.
  embedding_gradient = kernel {
    name = "embedding_gradient",
    const = { T = T, IT = {s32, s64} },
    args = { tensor("G", "T", "N", "D"), tensor("I", "IT", "N"), inout("S", f32, "V", "D") },
    tune = { BN = {8, 4, 16}, BD = {512, 256, 1024} },
    grid = function(d, c) return cdiv(d.N, c.BN), cdiv(d.D, c.BD) end,
    body = function(a, d, c, i, j)
      local n, col = i * c.BN, j * c.BD
      local id, g = a.I:tile({n}, {c.BN}, {pad = -1}):col(), a.G:tile({n, col}, {c.BN, c.BD})
      a.S:atomic_add({id, col + iota(1, c.BD)}, cast(g, f32))
    end,
    oracle = function(t, d)
      return (t.S + 0):scatter_add({t.I:col(), iota(1, d.D)}, t.G)
    end,
    inputs = inputs,
    cases = {
      {shape = {V = 50, D = 512, N = 37}},
      {shape = {V = 3, D = 129, N = 40}, const = {T = f32, IT = s64}, layout = {S = "col"},
       seed = 1},
      {shape = {V = 1, D = 7, N = 20}, const = {T = f16}, seed = 2},
      {shape = {V = 5, D = 8, N = 0}},
    },
  },
}
