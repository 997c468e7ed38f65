-- a kernel cannot be made while another one is traced
return kernel { name = "k", args = { out("C", f32, "N") }, grid = function() return 1 end,
  body = function() kernel { name = "x" } end }
--[====[ expect
kernel k
  out C f32 [N]
  dims N
kernel_in_kernel.lua:3:21: error: a kernel cannot be made while another one runs [K0401]
]====]
