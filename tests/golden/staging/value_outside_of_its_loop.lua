-- the safety net: a value leaves its loop inside of an error value
local ok, e = pcall(function()
  for k in range(0, d.K) do
    error({k, zeros(f32, 4)})
  end
end)
print(ok, type(e))
local x = e[1] + 1
local y = exp(e[2])
a.C:store({e[1]}, f32(1))
--[====[ expect
print: false	table
value_outside_of_its_loop.lua:8:16: error: the value made at value_outside_of_its_loop.lua:3:3 is used outside the loop or branch that made it [K0303]
value_outside_of_its_loop.lua:9:11: error: exp: the value made at value_outside_of_its_loop.lua:4:15 is used outside the loop or branch that made it [K0303]
value_outside_of_its_loop.lua:10:5: error: store: the value made at value_outside_of_its_loop.lua:3:3 is used outside the loop or branch that made it [K0303]
]====]
