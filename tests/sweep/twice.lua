-- What kiln_fake.c runs.
return kernel { name = 'twice',
  args = { tensor('X', f32, 'M', 'N'), out('Y', f32, 'M', 'N') },
  tune = { B = {32, 64, 128} },
  legal = function(c) return c.B < 128 end,
  grid = function(d, c) return cdiv(d.M, 8), cdiv(d.N, c.B) end,
  body = function(a, d, c, i, j)
    a.Y:store({i * 8, j * c.B}, a.X:tile({i * 8, j * c.B}, {8, c.B}) * 2)
  end,
  oracle = function(t) return t.X * 2 end }
