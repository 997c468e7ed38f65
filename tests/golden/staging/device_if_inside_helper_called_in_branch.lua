-- device if inside helper called in branch
local function clampi(x) local r = x if x > 5 then r = 5 end return r end local s = 0 if i > 3 then s = clampi(i) else s = clampi(j) end a.C:store({s}, zeros(f32,1))
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9 "r": index, %10 "r": index) {
    %11 = const 3 : index
    %12 = gt %9, %11 : bool
    %13 "s" = if %12 : index {
      %14 = const 5 : index
      %15 = gt %9, %14 : bool
      %16 "r" = if %15 : index {
        %17 = const 5 : index
        yield %17
      } else {
        yield %9
      }
      yield %16
    } else {
      %18 = const 5 : index
      %19 = gt %10, %18 : bool
      %20 "r" = if %19 : index {
        %21 = const 5 : index
        yield %21
      } else {
        yield %10
      }
      yield %20
    }
    %22 = const 0.0 : f32
    %23 = splat %22 : f32(1)
    store %2, %13, %23
    return
  }
}
]====]
