-- kiln check K0204_time_limit.lua --max-seconds 1 --max-steps 1000000000000
return kernel {
  name = "example",
  args = { tensor("X", f32, "N"), out("Y", f32, "N") },
  grid = function(d) return cdiv(d.N, 256) end,
  body = function(a, d, c, i)
    while true do end
  end,
}
