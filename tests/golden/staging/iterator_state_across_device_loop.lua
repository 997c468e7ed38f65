-- iterator state across device loop
local function it() local q=0 return function() q=q+1 return q end end local g=it() for k in range(0,d.K) do a.C:store({g()}, zeros(f32,1)) end
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0 : index
    %12 = const 1 : index
    %13 = const 0 : index
    %14 "q" = for %15 "k": index = %11, %3, %12 carry(%16 "q": index = %13) : index {
      %17 = const 1 : index
      %18 = add %16, %17 : index
      %19 = const 0.0 : f32
      %20 = splat %19 : f32(1)
      store %2, %18, %20
      yield %18
    }
    return
  }
}
]====]
