-- an if whose two sides return merges the returned values
local function clamp(x)
  if x > 5 then
    return 5, true
  else
    return x, false
  end
end
local v, hit = clamp(i)
a.C:store({v}, where(hit, f32(1), f32(2)))
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 5 : index
    %12 = gt %9, %11 : bool
    %13 "return value 1", %14 "return value 2" = if %12 : index, bool {
      %15 = const 5 : index
      %16 = const true : bool
      yield %15, %16
    } else {
      %17 = const false : bool
      yield %9, %17
    }
    %18 = const 1.0 : f32
    %19 = const 2.0 : f32
    %20 = select %14, %18, %19 : f32
    %21 = splat %20 : f32(1)
    store %2, %13, %21
    return
  }
}
]====]
