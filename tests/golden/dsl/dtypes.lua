-- numbers adopt the dtype, casts are explicit, stores round
local h, n8, u = a.H:tile({0}, {8}), zeros(s8, 8), zeros(u8, 8)
a.H:store({0}, h * 2 + 0.1)
a.H:store({8}, cast(h, f32) * log2e)
a.N:store({0}, n8 + 64.0)
a.N:store({0}, (n8 // 3) % 5 + min(n8, 7))
a.N:store({0}, ((n8 << 2) >> 1) & 7 | 8 ~ 1)
a.N:store({0}, i)
a.H:store({0}, 3)
a.H:store({16}, f32(0.1))
local s = f16(0.1) * 3
a.H:store({i}, cast(s, bf16))
local w = cast(sum(h), f32) + rowsum(cast(h, f32):row()):reshape(1)
-- args: inout("H", bf16, "M"), out("N", s32, "L")
--[====[ expect
  body(%0 "H": view bf16(?), %1 "N": view s32(?), %2 "M": index, %3 "L": index, %4: index, %5: index) {
    %6 = const 0 : index
    %7 "h" = load %0, %6 : bf16(8)
    %8 = const 0 : s8
    %9 "n8" = splat %8 : s8(8)
    %10 = const 0 : u8
    %11 "u" = splat %10 : u8(8)
    %12 = const 2.0 : bf16
    %13 = splat %12 : bf16(8)
    %14 = mul %7, %13 : bf16(8)
    %15 = const 0.10009765625 : bf16
    %16 = splat %15 : bf16(8)
    %17 = add %14, %16 : bf16(8)
    %18 = const 0 : index
    store %0, %18, %17
    %19 = cast %7 : f32(8)
    %20 = const 1.4426950216293335 : f32
    %21 = splat %20 : f32(8)
    %22 = mul %19, %21 : f32(8)
    %23 = const 8 : index
    %24 = cast %22 : bf16(8)
    store %0, %23, %24
    %25 = const 64 : s8
    %26 = splat %25 : s8(8)
    %27 = add %9, %26 : s8(8)
    %28 = const 0 : index
    %29 = cast %27 : s32(8)
    store %1, %28, %29
    %30 = const 3 : s8
    %31 = splat %30 : s8(8)
    %32 = floordiv %9, %31 : s8(8)
    %33 = const 5 : s8
    %34 = splat %33 : s8(8)
    %35 = mod %32, %34 : s8(8)
    %36 = const 7 : s8
    %37 = splat %36 : s8(8)
    %38 = min %9, %37 : s8(8)
    %39 = add %35, %38 : s8(8)
    %40 = const 0 : index
    %41 = cast %39 : s32(8)
    store %1, %40, %41
    %42 = const 2 : s8
    %43 = splat %42 : s8(8)
    %44 = shl %9, %43 : s8(8)
    %45 = const 1 : s8
    %46 = splat %45 : s8(8)
    %47 = shr %44, %46 : s8(8)
    %48 = const 7 : s8
    %49 = splat %48 : s8(8)
    %50 = and %47, %49 : s8(8)
    %51 = const 9 : s8
    %52 = splat %51 : s8(8)
    %53 = or %50, %52 : s8(8)
    %54 = const 0 : index
    %55 = cast %53 : s32(8)
    store %1, %54, %55
    %56 = const 0 : index
    %57 = splat %4 : index(1)
    %58 = cast %57 : s32(1)
    store %1, %56, %58
    %59 = const 0 : index
    %60 = const 3.0 : bf16
    %61 = splat %60 : bf16(1)
    store %0, %59, %61
    %62 = const 0.10000000149011612 : f32
    %63 = const 16 : index
    %64 = splat %62 : f32(1)
    %65 = cast %64 : bf16(1)
    store %0, %63, %65
    %66 = const 0.0999755859375 : f16
    %67 = const 3.0 : f16
    %68 "s" = mul %66, %67 : f16
    %69 = cast %68 : bf16
    %70 = splat %69 : bf16(1)
    store %0, %4, %70
    %71 = cast %7 : f32(8)
    %72 = reduce_sum %71 {axis = 0} : f32(1)
    %73 = item %72 : f32
    %74 = cast %73 : bf16
    %75 = cast %74 : f32
    %76 = cast %7 : f32(8)
    %77 = reshape %76 : f32(1,8)
    %78 = reduce_sum %77 {axis = 1} : f32(1,1)
    %79 = reshape %78 : f32(1)
    %80 = splat %75 : f32(1)
    %81 "w" = add %80, %79 : f32(1)
    return
  }
}
]====]
