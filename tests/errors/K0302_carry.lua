-- kiln check K0302_carry.lua
return kernel {
  name = "example",
  args = { tensor("X", f32, "N"), out("Y", f32, "N") },
  grid = function(d) return cdiv(d.N, 256) end,
  body = function(a, d, c, i)
    local x = a.X:tile({i * 256}, {256})
    local rows = {}
    for k in range(0, d.N, 256) do -- runs on the device, d.N / 256 times
      table.insert(rows, a.X:tile({k}, {256}))
    end
    a.Y:store({i * 256}, x)
  end,
}
