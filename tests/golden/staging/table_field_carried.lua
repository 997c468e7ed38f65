-- table field carried
local t={s=zeros(f32,4)} for k in range(0,d.K,32) do t.s = t.s + 1 end
--[====[ expect
table_field_carried.lua:2:62: error: field 's' set at table_field_carried.lua:2:56 in the device loop at table_field_carried.lua:2:26 is read in the next iteration or after the loop: only locals are carried [K0303]
]====]
