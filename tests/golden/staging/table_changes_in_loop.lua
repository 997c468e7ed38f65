-- a local that holds a table changes in a device loop
local t = {1}
for k in range(0, d.K) do
  t = {2}
end
print(t[1])
--[====[ expect
table_changes_in_loop.lua:6:7: error: `t` (a table) changes in the device loop at table_changes_in_loop.lua:3:1 (set at table_changes_in_loop.lua:4:3): only device values, numbers and booleans can be carried [K0303]
]====]
