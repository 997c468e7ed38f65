-- kiln check K0301_control.lua
return kernel {
  name = "example",
  args = { tensor("X", f32, "N"), out("Y", f32, "N") },
  grid = function(d) return cdiv(d.N, 256) end,
  body = function(a, d, c, i)
    local x = a.X:tile({i * 256}, {256})
    if x > 0 then x = x * 2 end -- x > 0 is a mask of 256 elements
    a.Y:store({i * 256}, x)
  end,
}
