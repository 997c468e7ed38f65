-- everything that a description can have
local T = {bf16, f16}
local function body(a, d, c, i, j, k) end
return {
  second = kernel {
    const = { T = T, N = {64, any}, B = {32, 64}, causal = {true, false} },
    tune = { BM = {64.0, 128}, act = {"relu", "none"}, scale = {0.5, 1} },
    args = {
      tensor("A", "T", "M", "N", 4), inout("C", f32, "M/128", "N//B", "cdiv(M, 16)"), scalar("n", s32),
      optional(tensor("Z", e4m3, "Q")), optional(scalar("eps", f32)),
    },
    legal = function(c) return c.BM * c.N <= 128 * 64 and c.act == "none" end,
    schedule = { stages = 4, load = { A = { pipe = "tma", depth = 3 } }, split = true },
    grid = function(d, c)
      return cdiv(d.M, c.BM), max(d.N // 2, 1) * 2 - 1, where(d.N % 2 == 0 and d.M > 5, d.N + 1, min(3, d.M))
    end,
    body = body,
    oracle = function(t) end, inputs = function(s, rng) end,
    cases = {
      {shape = {M = 128, N = 64, Q = 3}, const = {T = f16, causal = false}, set = {BM = 256}, layout = {A = "col"},
       stride = {C = {1, 2, 3}}, scalar = {n = 3, eps = 1e-5}, absent = {"Z"}, seed = 7},
      {shape = {M = 128, Q = 0}},
    },
  },
  first = kernel { args = { out("C", f32, "N") }, grid = function() return 3 end, body = body },
}
--[====[ expect
kernel first
  out C f32 [N]
  dims N
kiln-ir 1 tile
kernel first {
  arg C: out f32 [N]
  dims N
  grid 3
kernel second legal inputs oracle
  in A T [M] [N] [4]
  inout C f32 [M/128] [N//B] [cdiv(M, 16)]
  scalar n s32
  optional in Z e4m3 [Q]
  optional scalar eps f32
  dims M N Q
  const B: 32 64
  tune BM: 64 128
  const N: 64 any
  const T: bf16 f16
  tune act: "relu" "none"
  const causal: true false
  tune scale: 0.5 1
  schedule: load.A.depth=3 load.A.pipe="tma" split=true stages=4
  case shape: M=128 N=64 Q=3 const: T=f16 causal=false set: BM=256 layout: A="col" scalar: eps=1e-05 n=3 stride C: 1 2 3 absent Z seed 7
  case shape: M=128 Q=0 seed 0
kiln-ir 1 tile
kernel second {
  config B = 32, BM = 64, N = 64, T = bf16, act = "none", causal = true, scale = 0.5
  arg A: in bf16 [M, N, 4]
  arg C: inout f32 [M // 128, N // 32, cdiv(M, 16)]
  arg n: scalar s32
  arg Z: optional in e4m3 [Q]
  arg eps: optional scalar f32
  dims M, N, Q
  fact M % 128
  fact N = 64
  grid cdiv(M, 64), max(N // 2, 1) * 2 - 1, select(N % 2 == 0 and 5 < M, N + 1, min(3, M))
]====]
