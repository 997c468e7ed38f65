-- kiln run K1006_unwritten.lua --on interp --shape N=300
return kernel {
  name = "example",
  args = { tensor("X", f32, "N"), out("Y", f32, "N") },
  grid = function(d) return cdiv(d.N, 256) end,
  body = function(a, d, c, i)
    local y = a.Y:tile({i * 256}, {256}) -- inout("Y", f32, "N") has values to add to
    a.Y:store({i * 256}, y + a.X:tile({i * 256}, {256}))
  end,
}
