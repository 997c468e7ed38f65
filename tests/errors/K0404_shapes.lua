-- kiln run K0404_shapes.lua --on interp --shape N=96
return kernel {
  name = "example",
  args = { tensor("X", f32, "N"), tensor("scale", f32, "N/64"), out("Y", f32, "N") },
  grid = function(d) return cdiv(d.N, 64) end,
  body = function(a, d, c, i)
    local s = a.scale:tile({i}, {1})
    a.Y:store({i * 64}, a.X:tile({i * 64}, {64}) * s)
  end,
}
