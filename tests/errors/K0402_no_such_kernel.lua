-- kiln check K0402_no_such_kernel.lua --kernel exampel
return kernel {
  name = "example",
  args = { tensor("X", f32, "N"), out("Y", f32, "N") },
  grid = function(d) return cdiv(d.N, 256) end,
  body = function(a, d, c, i)
    local x = a.X:tile({i * 256}, {256})
    a.Y:store({i * 256}, x)
  end,
}
