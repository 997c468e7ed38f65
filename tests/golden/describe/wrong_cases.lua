-- cases
return kernel {
  name = "k",
  const = { T = {bf16, f32}, N = {64, any} },
  tune = { BM = {64} },
  args = { tensor("A", "T", "M", "N"), optional(tensor("bias", f32, "N")), scalar("eps", f32), out("C", "T", "M", "N") },
  grid = function() return 1 end,
  body = function() end,
  cases = {
    {shape = {N = 4}},
    {shape = {M = 4, K = 5, N = 2.5}},
    {shape = {M = -1}, const = {T = f16, U = 3, N = true}, set = {BN = 4}},
    {shape = {M = 1}, layout = {A = "column", eps = "row", Z = "row"}, stride = {A = {1}, Q = {1, 2}, C = {1, "x"}}, offset = {A = -1, C = 1.5, eps = 1}},
    {shape = {M = 1}, scalar = {A = 1, eps = "x"}, absent = {"A", "bias", 3}, seed = 1.5, sead = 4},
    {shape = 3},
  },
}
--[====[ expect
wrong_cases.lua:2:8: error: case 0 of kernel `k`: shape has no `M`; the dims are M, N [K0401]
wrong_cases.lua:2:8: error: case 1 of kernel `k`: shape: there is no dim `K`; there are: M, N [K0401]
wrong_cases.lua:2:8: error: case 1 of kernel `k`: shape.N must be an integer of at least 0 [K0401]
wrong_cases.lua:2:8: error: case 2 of kernel `k`: shape.M must be an integer of at least 0 [K0401]
wrong_cases.lua:2:8: error: case 2 of kernel `k`: const: there is no const `U`; there are: N, T [K0401]
wrong_cases.lua:2:8: error: case 2 of kernel `k`: const.N is not in the const's list [K0401]
wrong_cases.lua:2:8: error: case 2 of kernel `k`: const.T is not in the const's list [K0401]
wrong_cases.lua:2:8: error: case 2 of kernel `k`: set: there is no tune list `BN` (did you mean `BM`?); there are: BM [K0401]
wrong_cases.lua:2:8: error: case 3 of kernel `k`: layout: there is no tensor `Z`; there are: A, bias, C [K0401]
wrong_cases.lua:2:8: error: case 3 of kernel `k`: layout: there is no tensor `eps`; there are: A, bias, C [K0401]
wrong_cases.lua:2:8: error: case 3 of kernel `k`: layout.A must be "row" or "col" [K0401]
wrong_cases.lua:2:8: error: case 3 of kernel `k`: stride.A must be a list of 2 integers [K0401]
wrong_cases.lua:2:8: error: case 3 of kernel `k`: stride.C must be a list of integers [K0401]
wrong_cases.lua:2:8: error: case 3 of kernel `k`: stride: there is no tensor `Q`; there are: A, bias, C [K0401]
wrong_cases.lua:2:8: error: case 3 of kernel `k`: offset: there is no tensor `eps`; there are: A, bias, C [K0401]
wrong_cases.lua:2:8: error: case 3 of kernel `k`: offset.A must be an integer of at least 0 [K0401]
wrong_cases.lua:2:8: error: case 3 of kernel `k`: offset.C must be an integer of at least 0 [K0401]
wrong_cases.lua:2:8: error: case 4 of kernel `k`: sead: there is no such field (did you mean `seed`?); the fields are absent, const, layout, offset, scalar, schedule, seed, set, shape, stride [K0401]
wrong_cases.lua:2:8: error: case 4 of kernel `k`: scalar: there is no scalar `A`; there are: eps [K0401]
wrong_cases.lua:2:8: error: case 4 of kernel `k`: scalar.eps must be a number [K0401]
wrong_cases.lua:2:8: error: case 4 of kernel `k`: absent: `A` is no optional arg; there are: bias [K0401]
wrong_cases.lua:2:8: error: case 4 of kernel `k`: absent: `number 3` is no optional arg; there are: bias [K0401]
wrong_cases.lua:2:8: error: case 4 of kernel `k`: seed must be an integer [K0401]
wrong_cases.lua:2:8: error: case 5 of kernel `k`: shape is number 3; it is a table, as {M = 64} [K0401]
]====]
