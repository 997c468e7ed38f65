-- 4 deep
local s=zeros(f32,4) for x in range(0,d.K) do for y in range(0,d.K) do for z in range(0,d.K) do for w in range(0,d.K) do s = s + 1 end end end end a.C:store({0}, s)
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0.0 : f32
    %12 "s" = splat %11 : f32(4)
    %13 = const 0 : index
    %14 = const 1 : index
    %15 "s" = for %16 "x": index = %13, %3, %14 carry(%17 "s": f32(4) = %12) : f32(4) {
      %18 = const 0 : index
      %19 = const 1 : index
      %20 "s" = for %21 "y": index = %18, %3, %19 carry(%22 "s": f32(4) = %17) : f32(4) {
        %23 = const 0 : index
        %24 = const 1 : index
        %25 "s" = for %26 "z": index = %23, %3, %24 carry(%27 "s": f32(4) = %22) : f32(4) {
          %28 = const 0 : index
          %29 = const 1 : index
          %30 "s" = for %31 "w": index = %28, %3, %29 carry(%32 "s": f32(4) = %27) : f32(4) {
            %33 = const 1.0 : f32
            %34 = splat %33 : f32(4)
            %35 "s" = add %32, %34 : f32(4)
            yield %35
          }
          yield %30
        }
        yield %25
      }
      yield %20
    }
    %36 = const 0 : index
    store %2, %36, %15
    return
  }
}
]====]
