-- kiln check K0701_unsupported.lua --target sm_90a
return kernel {
  name = "example",
  args = { tensor("X", s8, "N", "K"), out("Y", s32, "N", "N") },
  grid = function(d) return cdiv(d.N, 256) end,
  body = function(a, d, c, i)
    local x = a.X:tile({i * 256, 0}, {256, 32})
    a.Y:store({i * 256, 0}, dot(x, x:T()))
  end,
}
