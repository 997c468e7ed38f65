-- hidden upvalue accumulator
local function mk() local n = zeros(f32,4) return function(v) n = n + v return n end end local add = mk() for k in range(0,d.K,32) do a.C:store({k}, add(1)) end
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0.0 : f32
    %12 "n" = splat %11 : f32(4)
    %13 = const 0 : index
    %14 = const 32 : index
    %15 "n" = for %16 "k": index = %13, %3, %14 carry(%17 "n": f32(4) = %12) : f32(4) {
      %18 = const 1.0 : f32
      %19 = splat %18 : f32(4)
      %20 = add %17, %19 : f32(4)
      store %2, %16, %20
      yield %20
    }
    return
  }
}
]====]
