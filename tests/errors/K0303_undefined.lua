-- kiln check K0303_undefined.lua
return kernel {
  name = "example",
  args = { tensor("X", f32, "N"), out("Y", f32, "N") },
  grid = function(d) return cdiv(d.N, 256) end,
  body = function(a, d, c, i)
    local x
    if i > 0 then x = a.X:tile({i * 256}, {256}) end
    a.Y:store({i * 256}, x)
  end,
}
