-- an integer scalar beside an index becomes one; tiles do not
local n = a.n + i
local last = min(a.n, d.M, i * 4)
local seen = iota(1, 4) + i < a.n
local m = where(i < d.M, a.n, d.M)
local pos = 0
for k in range(0, a.n) do pos = pos + k * a.n end
a.C:store({n + last + m + pos}, where(seen, a.t:tile({0}, {4}):row(), 0):reshape(4))
-- args: scalar("n", s32), tensor("t", s32, "M"), out("C", s32, "M")
--[====[ expect
  body(%0 "n": s32, %1 "t": view s32(?), %2 "C": view s32(?), %3 "M": index, %4: index, %5: index) {
    %6 = cast %0 : index
    %7 "n" = add %6, %4 : index
    %8 = const 4 : index
    %9 = mul %4, %8 : index
    %10 = cast %0 : index
    %11 = min %10, %3 : index
    %12 "last" = min %11, %9 : index
    %13 = iota {axis = 1} : index(1,4)
    %14 = splat %4 : index(1,4)
    %15 = add %13, %14 : index(1,4)
    %16 = cast %0 : index
    %17 = splat %16 : index(1,4)
    %18 "seen" = lt %15, %17 : bool(1,4)
    %19 = lt %4, %3 : bool
    %20 = cast %0 : index
    %21 "m" = select %19, %20, %3 : index
    %22 = cast %0 : index
    %23 = const 0 : index
    %24 = const 1 : index
    %25 = const 0 : index
    %26 "pos" = for %27 "k": index = %23, %22, %24 carry(%28 "pos": index = %25) : index {
      %29 = cast %0 : index
      %30 = mul %27, %29 : index
      %31 "pos" = add %28, %30 : index
      yield %31
    }
    %32 = add %7, %12 : index
    %33 = add %32, %21 : index
    %34 = add %33, %26 : index
    %35 = const 0 : index
    %36 = load %1, %35 : s32(4)
    %37 = reshape %36 : s32(1,4)
    %38 = const 0 : s32
    %39 = splat %38 : s32(1,4)
    %40 = select %18, %37, %39 : s32(1,4)
    %41 = reshape %40 : s32(4)
    store %2, %34, %41
    return
  }
}
]====]
