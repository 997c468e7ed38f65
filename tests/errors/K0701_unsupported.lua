-- kiln check K0701_unsupported.lua --target sm_90a
return kernel {
  name = "example",
  args = { tensor("X", f32, "N"), out("Y", f32, "2 * N", 2) },
  grid = function(d) return cdiv(2 * d.N, 128) end,
  body = function(a, d, c, i)
    local x = a.X:every(0, 4):reshape(2 * d.N, 2)
    a.Y:store({i * 128, 0}, x:tile({i * 128, 0}, {128, 2}))
  end,
}
