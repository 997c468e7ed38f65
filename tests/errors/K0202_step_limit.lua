-- kiln check K0202_step_limit.lua --max-steps 1000000
return kernel {
  name = "example",
  args = { tensor("X", f32, "N"), out("Y", f32, "N") },
  grid = function(d) return cdiv(d.N, 256) end,
  body = function(a, d, c, i)
    local x = a.X:tile({i * 256}, {256})
    local n = 1
    while n ~= 0 do n = n + 2 end -- never even
    a.Y:store({i * 256}, x)
  end,
}
