-- grids that a launch cannot compute
local function k(grid) return kernel { args = { out("C", f32, "N", "M") }, grid = grid, body = function() end } end
return {
  a = k(function(d) if d.N > 5 then return 1 end return 2 end),
  b = k(function(d) return 1, 2, 3, 4 end),
  c = k(function(d) return end),
  d = k(function(d) return d.N / 2 end),
  e = k(function(d) return exp(d.N) end),
  f = k(function(d) for i in range(0, d.N) do end return 1 end),
  g = k(function(d) return zeros(index, 4) end),
  h = k(function(d) return "x" end),
  i = k(function(d) return 2.5, -1 end),
  j = k(function(d) return d.Q end),
  k = k(function(d) return d.N > 4 end),
  l = k(function(d) local n = 1 while n < d.N do n = n * 2 end return n end),
  m = k(function(d) print(d.N) return cast(d.N, s32) end),
  n = k(function(d) return d.N & 3 end),
  o = k(function(d) local n = d.N for _ = 1, 20 do n = n * n + 1 end return n end),
}
--[====[ expect
kernel a
  out C f32 [N] [M]
  dims N M
kernel b
  out C f32 [N] [M]
  dims N M
kernel c
  out C f32 [N] [M]
  dims N M
kernel d
  out C f32 [N] [M]
  dims N M
kernel e
  out C f32 [N] [M]
  dims N M
kernel f
  out C f32 [N] [M]
  dims N M
kernel g
  out C f32 [N] [M]
  dims N M
kernel h
  out C f32 [N] [M]
  dims N M
kernel i
  out C f32 [N] [M]
  dims N M
kernel j
  out C f32 [N] [M]
  dims N M
kernel k
  out C f32 [N] [M]
  dims N M
kernel l
  out C f32 [N] [M]
  dims N M
kernel m
  out C f32 [N] [M]
  dims N M
kernel n
  out C f32 [N] [M]
  dims N M
kernel o
  out C f32 [N] [M]
  dims N M
grid_refused.lua:4:21: error: `if` on a device condition is not available in grid: a launch computes expressions; use where, min or max [K0301]
grid_refused.lua:2:31: error: grid of kernel `b` returns 4 values; it must return 1 to 3 sizes [K0401]
grid_refused.lua:2:31: error: grid of kernel `c` returns 0 values; it must return 1 to 3 sizes [K0401]
grid_refused.lua:7:32: error: '/' on device integers; use '//' [K0501]
grid_refused.lua:8:28: error: exp takes floats, got index; cast it first [K0501]
grid_refused.lua:9:30: error: range is not available here: tiles live in a kernel's body [K0305]
grid_refused.lua:10:28: error: zeros is not available here: tiles live in a kernel's body [K0305]
grid_refused.lua:2:31: error: grid of kernel `h` returns a string as size 1; it must be an integer [K0401]
grid_refused.lua:2:31: error: grid of kernel `i` returns number 2.5 as size 1; it must be an integer [K0401]
grid_refused.lua:2:31: error: grid of kernel `j` returns nil as size 1; it must be an integer [K0401]
grid_refused.lua:2:31: error: grid of kernel `k` returns bool as size 1; it must be an integer [K0401]
grid_refused.lua:15:41: error: a device loop is not available in grid: a launch computes expressions; use where, min or max [K0301]
grid_refused.lua:16:21: error: print of a device value is not available in grid [K0305]
grid_refused.lua:16:39: error: cast is not available in grid [K0503]
grid_refused.lua:17:32: error: `&` is not available in grid: a launch computes with + - * // % min max cdiv, comparisons and where [K0503]
grid_refused.lua:18:58: error: this launch expression is larger than 4096 terms [K0702]
]====]
