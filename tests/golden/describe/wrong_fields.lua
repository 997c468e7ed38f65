-- wrong fields, many at once
return kernel {
  name = "a-b",
  arg = {},
  tunes = { BM = {64} },
  tune = { BM = 64, BN = {}, BK = {64, "a"}, T = {bf16}, S = {64, 64}, F = {function() end}, ["1x"] = {1} },
  const = { T = {bf16, 3}, D = {any}, E = {1, any, 2} },
  schedule = 4,
  legal = 3,
  body = "x",
  oracle = {},
  cases = {3, {shapes = {}}},
}
--[====[ expect
wrong_fields.lua:2:8: error: a kernel has no field `arg` (did you mean `args`?); the fields are args, body, cases, const, grid, inputs, legal, name, oracle, schedule, tune [K0401]
wrong_fields.lua:2:8: error: a kernel has no field `tunes` (did you mean `tune`?); the fields are args, body, cases, const, grid, inputs, legal, name, oracle, schedule, tune [K0401]
wrong_fields.lua:2:8: error: the name of a kernel is made of letters, digits and _; got a-b [K0401]
wrong_fields.lua:2:8: error: kernel: value 1 of const.D is `any`; values are numbers, booleans, dtypes and strings, and `any` ends a const list [K0401]
wrong_fields.lua:2:8: error: kernel: value 2 of const.E is `any`; values are numbers, booleans, dtypes and strings, and `any` ends a const list [K0401]
wrong_fields.lua:2:8: error: kernel: values of const.T are of different kinds [K0401]
wrong_fields.lua:2:8: error: kernel: tune: "1x" is no name [K0401]
wrong_fields.lua:2:8: error: kernel: values of tune.BK are of different kinds [K0401]
wrong_fields.lua:2:8: error: kernel: tune.BM needs a list of values, as {64, 128}; got number 64 [K0401]
wrong_fields.lua:2:8: error: kernel: tune.BN needs a list of values, as {64, 128}; got an empty list [K0401]
wrong_fields.lua:2:8: error: kernel: value 1 of tune.F is a function; values are numbers, booleans, dtypes and strings [K0401]
wrong_fields.lua:2:8: error: kernel: value 2 of tune.S is in the list twice [K0401]
wrong_fields.lua:2:8: error: kernel: `T` is in const and in tune [K0401]
wrong_fields.lua:2:8: error: this kernel needs args, a list of tensor(...), out(...), ...; got nil [K0401]
wrong_fields.lua:2:8: error: this kernel needs grid to be a function, got nil [K0401]
wrong_fields.lua:2:8: error: this kernel needs body to be a function, got a string [K0401]
wrong_fields.lua:2:8: error: this kernel needs legal to be a function, got number 3 [K0401]
wrong_fields.lua:2:8: error: this kernel needs oracle to be a function, got a table [K0401]
wrong_fields.lua:2:8: error: kernel: schedule is number 4; it is a table, as schedule = {stages = 4} [K0401]
wrong_fields.lua:2:8: error: case 0 of this kernel is number 3; it is a table [K0401]
wrong_fields.lua:2:8: error: case 1 of this kernel: shapes: there is no such field (did you mean `shape`?); the fields are absent, const, layout, offset, scalar, schedule, seed, set, shape, stride [K0401]
wrong_fields.lua:2:8: error: the kernel needs a name [K0401]
]====]
