-- a function changes in a device loop
local f = function(x) return x end
for k in range(0, d.K) do
  f = function(x) return x + 1 end
end
a.C:store({0}, f(f32(1)))
--[====[ expect
function_changes_in_loop.lua:6:16: error: `f` (a function) changes in the device loop at function_changes_in_loop.lua:3:1 (set at function_changes_in_loop.lua:4:3): only device values, numbers and booleans can be carried [K0303]
]====]
