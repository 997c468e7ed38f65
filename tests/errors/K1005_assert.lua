-- kiln run K1005_assert.lua --on interp --shape N=300
return kernel {
  name = "example",
  args = { tensor("X", f32, "N"), out("Y", f32, "N") },
  grid = function(d) return cdiv(d.N, 256) end,
  body = function(a, d, c, i)
    local x = a.X:tile({i * 256}, {256})
    assert(d.N % 256 == 0, "N is no multiple of 256")
    a.Y:store({i * 256}, x)
  end,
}
