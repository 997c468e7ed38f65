-- gather, scatter, atomics
local ids = a.ids:tile({i * 8}, {8})
local rows = a.E:gather({ids:col(), iota(1, 16)})
a.O:scatter({i * 8 + iota(0, 8), iota(1, 16)}, rows)
local one = a.E:gather({i, 3})
a.O:scatter({0, 3}, one)
a.O:scatter({ids:row(), 0}, 1)
local page = a.E:at(2):gather({ids}, {pad = -inf})
print(page, one)
local old = a.N:atomic_add({ids % 4}, 1)
a.N:atomic_max({i}, 7)
a.O:atomic_add({iota(0, 8), iota(1, 16)}, cast(rows, bf16))
print(a.N:atomic_exchange({0}, cast(i, s32)))
-- args: tensor("ids", s32, "B"), tensor("E", f32, "V", 16), inout("N", s32, "L"), out("O", f32, "B", 16)
--[====[ expect
  body(%0 "ids": view s32(?), %1 "E": view f32(?,16), %2 "N": view s32(?), %3 "O": view f32(?,16), %4 "B": index, %5 "V": index, %6 "L": index, %7: index, %8: index) {
    %9 = const 8 : index
    %10 = mul %7, %9 : index
    %11 "ids" = load %0, %10 : s32(8)
    %12 = reshape %11 : s32(8,1)
    %13 = iota {axis = 1} : index(1,16)
    %14 = cast %12 : index(8,1)
    %15 "rows" = gather %1, %14, %13 : f32(8,16)
    %16 = const 8 : index
    %17 = mul %7, %16 : index
    %18 = iota {axis = 0} : index(8,1)
    %19 = splat %17 : index(8,1)
    %20 = add %19, %18 : index(8,1)
    %21 = iota {axis = 1} : index(1,16)
    scatter %3, %20, %21, %15
    %22 = const 3 : index
    %23 "one" = gather %1, %7, %22 : f32
    %24 = const 0 : index
    %25 = const 3 : index
    scatter %3, %24, %25, %23
    %26 = reshape %11 : s32(1,8)
    %27 = cast %26 : index(1,8)
    %28 = const 0 : index
    %29 = const 1.0 : f32
    %30 = splat %29 : f32(1,8)
    scatter %3, %27, %28, %30
    %31 = const 2 : index
    %32 = view_at %1, %31 {axis = 0} : view f32(16)
    %33 = cast %11 : index(8)
    %34 "page" = gather %32, %33 {pad = -inf} : f32(8)
    print %34, %23
    %35 = const 4 : s32
    %36 = splat %35 : s32(8)
    %37 = mod %11, %36 : s32(8)
    %38 = cast %37 : index(8)
    %39 = const 1 : s32
    %40 = splat %39 : s32(8)
    %41 "old" = atomic %2, %38, %40 {kind = add} : s32(8)
    %42 = const 7 : s32
    %43 = atomic %2, %7, %42 {kind = max} : s32
    %44 = iota {axis = 0} : index(8,1)
    %45 = iota {axis = 1} : index(1,16)
    %46 = cast %15 : bf16(8,16)
    %47 = cast %46 : f32(8,16)
    %48 = atomic %3, %44, %45, %47 {kind = add} : f32(8,16)
    %49 = cast %7 : s32
    %50 = const 0 : index
    %51 = atomic %2, %50, %49 {kind = exchange} : s32
    print %51
    return
  }
}
]====]
