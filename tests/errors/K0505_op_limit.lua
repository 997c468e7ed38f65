-- kiln check K0505_op_limit.lua --max-ops 1000
return kernel {
  name = "example",
  args = { tensor("X", f32, "N"), out("Y", f32, "N") },
  grid = function(d) return cdiv(d.N, 256) end,
  body = function(a, d, c, i)
    local x = a.X:tile({i * 256}, {256})
    for n = 1, 2000 do x = x + n end -- a plain loop is unrolled
    a.Y:store({i * 256}, x)
  end,
}
