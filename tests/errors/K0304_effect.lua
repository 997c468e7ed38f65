-- kiln check K0304_effect.lua
return kernel {
  name = "example",
  args = { tensor("X", f32, "N"), out("Y", f32, "N") },
  grid = function(d) return cdiv(d.N, 256) end,
  body = function(a, d, c, i)
    local x = a.X:tile({i * 256}, {256})
    local seen = false
    local function mark() seen = true return i < 3 end
    x = where(i > 0 and mark(), x, 0)
    a.Y:store({i * 256}, x)
  end,
}
