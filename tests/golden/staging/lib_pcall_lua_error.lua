-- library: an argument error with a device value is a Lua error
print(pcall(string.rep, "x", i)) print(pcall(function() return ("x"):rep(i) end)) a.C:store({0}, zeros(f32, 1))
--[====[ expect
print: false	bad argument #2 to 'string.rep' (number expected, got index)
print: false	lib_pcall_lua_error.lua:2:70: bad argument #1 to 'rep' (number expected, got index)
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0.0 : f32
    %12 = splat %11 : f32(1)
    %13 = const 0 : index
    store %2, %13, %12
    return
  }
}
]====]
