-- scratch arguments: what is refused
local function k(name, ...)
  return kernel { name = name, args = { ... }, grid = function(d) return 1 end,
                  body = function(a) a.C:store({0}, 1) end,
                  cases = {{shape = {M = 4}, layout = {W = "col"}}} }
end
return { a = k("a", scratch("W", f32, "M", "K"), out("C", f32, "M")),
         b = k("b", scratch("W", f32, "M", {fill = 1}), out("C", f32, "M")),
         c = k("c", scratch("W", f32, "M"), tensor("C", f32, "M")),
         d = k("d", optional(scratch("W", f32, "M")), out("C", f32, "M")) }
--[====[ expect
scratch_refused.lua:7:21: error: size of scratch `W`: "K" is no dim of another argument, no const and no meta-parameter of integers [K0401]
  scratch_refused.lua:7:14: called from here
scratch_refused.lua:3:10: error: case 0 of kernel `a`: layout: there is no tensor `W`; there are: C [K0401]
  scratch_refused.lua:7:14: called from here
scratch_refused.lua:8:21: error: options of scratch are a table {zero = true} [K0401]
scratch_refused.lua:3:10: error: case 0 of kernel `b`: layout: there is no tensor `W`; there are: C [K0401]
  scratch_refused.lua:8:14: called from here
scratch_refused.lua:3:10: error: kernel `c` writes nothing: it has no out or inout [K0401]
  scratch_refused.lua:9:14: called from here
scratch_refused.lua:3:10: error: case 0 of kernel `c`: layout: there is no tensor `W`; there are: C [K0401]
  scratch_refused.lua:9:14: called from here
scratch_refused.lua:10:21: error: scratch `W` is not passed: it cannot be optional [K0401]
]====]
