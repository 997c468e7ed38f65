-- kiln show K0306_always_true.lua --stage tile --output /dev/null
return kernel {
  name = "example",
  args = { tensor("X", f32, "N"), out("Y", f32, "N") },
  grid = function(d) return cdiv(d.N, 256) end,
  body = function(a, d, c, i)
    local n = d.N % 256 -- a number, no condition
    local x = a.X:tile({i * 256}, {256})
    if n then x = x * 2 end
    a.Y:store({i * 256}, x)
  end,
}
