-- library: what kernels cannot have
print(math.random(3))
--[====[ expect
lib_refused_names.lua:2:7: error: math.random is not available in kernels: a kernel must trace the same way each time; inputs() is given a generator [K0206]
]====]
