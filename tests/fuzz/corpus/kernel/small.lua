return kernel {
  name = "add_one",
  args = { tensor("X", f32, "M", "N"), out("Y", f32, "M", "N") },
  tune = { BM = {16, 32} },
  grid = function(d, c) return cdiv(d.M, c.BM), cdiv(d.N, 16) end,
  body = function(a, d, c, i, j)
    local x = a.X:tile({i * c.BM, j * 16}, {c.BM, 16})
    local s = zeros(f32, c.BM, 16)
    for k in range(0, d.N, 16) do
      if k > 3 then s = s + x else s = s - 1 end
    end
    a.Y:store({i * c.BM, j * 16}, where(x > 0, s, -s))
  end,
}
