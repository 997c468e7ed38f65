-- table field used after loop
local t={} for k in range(0,d.K,32) do t.s = zeros(f32,4) end a.C:store({0}, t.s)
--[====[ expect
table_field_used_after_loop.lua:2:80: error: field 's' set at table_field_used_after_loop.lua:2:42 in the device loop at table_field_used_after_loop.lua:2:12 is read in the next iteration or after the loop: only locals are carried [K0303]
]====]
