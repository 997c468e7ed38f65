-- timeout -s INT 1 kiln check K0004_interrupted.lua
return kernel {
  name = "example",
  args = { tensor("X", f32, "N"), out("Y", f32, "N") },
  grid = function(d) return cdiv(d.N, 256) end,
  body = function(a, d, c, i)
    while true do end
  end,
}
