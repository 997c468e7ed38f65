-- method calls
local obj={w=3} function obj:scale(x) return x*self.w end function obj.new(n) return setmetatable({w=n},{__index=obj}) end a.C:store({0,0}, obj.new(7):scale(zeros(f32,4)):col())
-- args: tensor("A", bf16, "K"), tensor("E", f32, "M", "N", "S", "T"), out("C", f32, "L", "P")
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?,?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9 "P": index, %10: index, %11: index) {
    %12 = const 0.0 : f32
    %13 = splat %12 : f32(4)
    %14 = const 7.0 : f32
    %15 = splat %14 : f32(4)
    %16 = mul %13, %15 : f32(4)
    %17 = reshape %16 : f32(4,1)
    %18 = const 0 : index
    %19 = const 0 : index
    store %2, %18, %19, %17
    return
  }
}
]====]
