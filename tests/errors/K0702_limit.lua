-- kiln check K0702_limit.lua --target sm_90a
return kernel {
  name = "example",
  args = { tensor("X", f32, "M", "N"), out("Y", f32, "M", "N") },
  grid = function(d) return cdiv(d.N, 256) end,
  body = function(a, d, c, i)
    local x = a.X:tile({0, i * 256}, {2048, 256})
    a.Y:store({0, i * 256}, x:T():T() * 2)
  end,
}
