-- kiln check K0502_shapes.lua
return kernel {
  name = "example",
  args = { tensor("X", f32, "M", "N"), tensor("b", f32, "N"), out("Y", f32, "M", "N") },
  grid = function(d) return cdiv(d.N, 256) end,
  body = function(a, d, c, i)
    local x = a.X:tile({0, i * 256}, {16, 256})
    a.Y:store({0, i * 256}, x + a.b:tile({i * 256}, {256}))
  end,
}
