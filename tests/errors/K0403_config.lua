-- kiln check K0403_config.lua --set B=2048
return kernel {
  name = "example",
  args = { tensor("X", f32, "N"), out("Y", f32, "N") },
  grid = function(d, c) return cdiv(d.N, c.B) end,
  body = function(a, d, c, i)
    local x = a.X:tile({i * c.B}, {c.B})
    a.Y:store({i * c.B}, x)
  end,
  tune = { B = {256, 512} },
  legal = function(c) return c.B <= 1024 end,
}
