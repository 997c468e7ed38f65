-- library: a module loaded inside a device loop
for k in range(0, d.K, 32) do local h = require "helpers" a.C:store({k}, h.twice(zeros(f32, 1))) end
--[====[ expect
lib_require_in_loop.lua:2:41: error: module 'helpers' not found: no file 'helpers.lua' in the kernel root [K0201]
]====]
