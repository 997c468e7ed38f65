-- scratch arguments: sizes of dims, consts and meta-parameters
return kernel { name = "k", const = {D = {64}}, tune = {BM = {32}},
  args = { scratch("W", f32, "cdiv(M, BM)", "D", 2), tensor("X", f32, "M"),
           scratch("count", s32, 1, {zero = true}), out("C", f32, "M") },
  grid = function(d, c) return cdiv(d.M, c.BM) end,
  body = function(a, d, c, i)
    local ticket = a.count:atomic_add({0}, 1)
    a.W:store({i, 0, 0}, full(f32, 0, 1, c.D, 2))
    a.C:store({i}, cast(ticket, f32))
  end }
--[====[ expect
kernel k
  scratch W f32 [cdiv(M, BM)] [D] [2]
  in X f32 [M]
  zero scratch count s32 [1]
  out C f32 [M]
  dims M
  tune BM: 32
  const D: 64
kiln-ir 1 tile
kernel k {
  config BM = 32, D = 64
  arg W: scratch f32 [cdiv(M, 32), 64, 2]
  arg X: in f32 [M]
  arg count: zero scratch s32 [1]
  arg C: out f32 [M]
  dims M
  grid cdiv(M, 32)
]====]
