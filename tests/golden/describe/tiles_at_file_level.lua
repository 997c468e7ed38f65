-- tiles live in bodies
local x = zeros(f32, 4)
local y = f32(0.5)
for k in range(0, 4) do end
return nil
--[====[ expect
tiles_at_file_level.lua:2:11: error: zeros is not available here: tiles live in a kernel's body [K0305]
tiles_at_file_level.lua:4:10: error: range is not available here: tiles live in a kernel's body [K0305]
tiles_at_file_level.lua:1:1: error: a kernel file returns kernel { ... } or a table name -> kernel; this one returns nil [K0401]
]====]
