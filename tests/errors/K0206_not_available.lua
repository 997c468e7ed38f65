-- kiln check K0206_not_available.lua
return kernel {
  name = "example",
  args = { tensor("X", f32, "N"), out("Y", f32, "N") },
  grid = function(d) return cdiv(d.N, 256) end,
  body = function(a, d, c, i)
    local x = a.X:tile({i * 256}, {256})
    local file = io.open("weights.txt")
    a.Y:store({i * 256}, x)
  end,
}
