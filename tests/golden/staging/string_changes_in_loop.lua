-- a string changes in a device loop
local s = "a"
for k in range(0, d.K) do
  s = s .. "b"
end
print(s)
--[====[ expect
string_changes_in_loop.lua:4:7: error: `s` (a string) changes in the device loop at string_changes_in_loop.lua:3:1 (set at string_changes_in_loop.lua:4:9): only device values, numbers and booleans can be carried [K0303]
string_changes_in_loop.lua:6:7: error: `s` (a string) changes in the device loop at string_changes_in_loop.lua:3:1 (set at string_changes_in_loop.lua:4:9): only device values, numbers and booleans can be carried [K0303]
]====]
