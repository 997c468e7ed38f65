-- k:with{...} replaces fields of a description
local k = kernel {
  name = "k", tune = {BM = {64, 128}}, legal = function(c) return c.BM < 100 end,
  args = { tensor("A", f32, "M"), out("C", f32, "M") }, cases = {{shape = {M = 1}}},
  grid = function(d, c) return cdiv(d.M, c.BM) end, body = function(a, d, c, i) end,
}
local big = k:with { name = "big", tune = {BM = {32}}, cases = {{shape = {M = 4096}}, {shape = {M = 5000}}} }
return { k = k, big = big, oracle = big:with { oracle = function(t) return t.A end, schedule = {stages = 3} } }
--[====[ expect
kernel big legal
  in A f32 [M]
  out C f32 [M]
  dims M
  tune BM: 32
  case shape: M=4096 seed 0
  case shape: M=5000 seed 0
kiln-ir 1 tile
kernel big {
  config BM = 32
  arg A: in f32 [M]
  arg C: out f32 [M]
  dims M
  grid cdiv(M, 32)
kernel k legal
  in A f32 [M]
  out C f32 [M]
  dims M
  tune BM: 64 128
  case shape: M=1 seed 0
kiln-ir 1 tile
kernel k {
  config BM = 64
  arg A: in f32 [M]
  arg C: out f32 [M]
  dims M
  grid cdiv(M, 64)
kernel oracle legal oracle
  in A f32 [M]
  out C f32 [M]
  dims M
  tune BM: 32
  schedule: stages=3
  case shape: M=4096 seed 0
  case shape: M=5000 seed 0
kiln-ir 1 tile
kernel oracle {
  config BM = 32
  arg A: in f32 [M]
  arg C: out f32 [M]
  dims M
  grid cdiv(M, 32)
]====]
