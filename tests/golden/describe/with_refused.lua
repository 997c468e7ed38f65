-- with checks what it is given
local k = kernel { name = "k", args = { out("C", f32, "M") }, grid = function() return 1 end, body = function() end }
local a = k:with { args = {}, body = 3, tunes = {} }
local b = k:with { cases = {{shape = {N = 1}}} }
local c = k.whith
--[====[ expect
with_refused.lua:3:13: error: with cannot replace `args`: that is another kernel [K0401]
with_refused.lua:3:13: error: with cannot replace `body`: that is another kernel [K0401]
with_refused.lua:3:13: error: with: a kernel has no field `tunes` (did you mean `tune`?); the fields are args, body, cases, const, grid, inputs, legal, name, oracle, schedule, tune [K0401]
with_refused.lua:4:13: error: with: case 0 of kernel `k`: shape: there is no dim `N`; there are: M [K0401]
with_refused.lua:4:13: error: with: case 0 of kernel `k`: shape has no `M`; the dims are M [K0401]
with_refused.lua:5:13: error: a kernel has no whith; it has with [K0401]
]====]
