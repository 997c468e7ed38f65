-- kiln show K0307_unrolled.lua --stage tile --output /dev/null
return kernel {
  name = "example",
  args = { tensor("X", f32, "N"), out("Y", f32, "N") },
  grid = function(d) return cdiv(d.N, 256) end,
  body = function(a, d, c, i)
    local x = a.X:tile({i * 256}, {256})
    local k = 0
    while k < 3 do
      x, k = x * 2, k + i
    end
    a.Y:store({i * 256}, x)
  end,
}
