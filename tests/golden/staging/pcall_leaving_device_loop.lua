-- pcall leaving device loop
local s=zeros(f32,4) local ok,e = pcall(function() for k in range(0,d.K,32) do s = s + 1 error("x",0) end end) print(tostring(ok), e) a.C:store({0}, s+5)
--[====[ expect
print: false	x
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0.0 : f32
    %12 "s" = splat %11 : f32(4)
    %13 = const 5.0 : f32
    %14 = splat %13 : f32(4)
    %15 = add %12, %14 : f32(4)
    %16 = const 0 : index
    store %2, %16, %15
    return
  }
}
]====]
