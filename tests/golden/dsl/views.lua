-- views of tensors: at, slice, T, permute, every, reshape, size
local q = a.Q:at(i)
local head = q:at(j, 2)
local lens = a.cu
local lo, hi = lens:at(i), lens:at(i + 1)
local seq = a.K:slice({lo, 0}, {hi - lo, 128})
for n in range(0, seq:size(0), c.BN) do
  local k = seq:tile({n, 0}, {c.BN, 128})
  local s = a.S:every(1, 32):tile({n, 0}, {c.BN, 128})
  print(rowsum(k * s))
end
local wide = a.K:reshape(d.M, 2, 64):permute(1, 0, 2):at(1)
a.O:T():slice({0, 8}, {128, 16}):store({0, 0}, full(f32, 1, 4, 4))
print(wide:tile({0, 0}, {4, 4}), head:tile({0}, {4}))
assert(a.K:size(1) == 128 and a.K:size(0) == d.M, "sizes")
-- args: tensor("Q", f32, "B", "H", 4, "L"), tensor("K", f32, "M", 128), tensor("S", f32, "M", 4), tensor("cu", s32, "C"), out("O", f32, "M", 128)
--[====[ expect
  body(%0 "Q": view f32(?,?,4,?), %1 "K": view f32(?,128), %2 "S": view f32(?,4), %3 "cu": view s32(?), %4 "O": view f32(?,128), %5 "B": index, %6 "H": index, %7 "L": index, %8 "M": index, %9 "C": index, %10: index, %11: index) {
    %12 "q" = view_at %0, %10 {axis = 0} : view f32(?,4,?)
    %13 = const 2 : index
    %14 = view_at %12, %11 {axis = 0} : view f32(4,?)
    %15 "head" = view_at %14, %13 {axis = 0} : view f32(?)
    %16 = load %3, %10 : s32(1)
    %17 "lo" = item %16 : s32
    %18 = const 1 : index
    %19 = add %10, %18 : index
    %20 = load %3, %19 : s32(1)
    %21 "hi" = item %20 : s32
    %22 = sub %21, %17 : s32
    %23 = cast %17 : index
    %24 = const 0 : index
    %25 = cast %22 : index
    %26 = const 128 : index
    %27 "seq" = view_slice %1, %23, %24, %25, %26 : view f32(?,128)
    %28 = dim %27 {axis = 0} : index
    %29 = const 0 : index
    %30 = const 64 : index
    for %31 "n": index = %29, %28, %30 {
      %32 = const 0 : index
      %33 "k" = load %27, %31, %32 : f32(64,128)
      %34 = view_every %2 {axis = 1, count = 32} : view f32(?,128)
      %35 = const 0 : index
      %36 "s" = load %34, %31, %35 : f32(64,128)
      %37 = mul %33, %36 : f32(64,128)
      %38 = reduce_sum %37 {axis = 1} : f32(64,1)
      print %38
      yield
    }
    %39 = const 2 : index
    %40 = const 64 : index
    %41 = view_reshape %1, %8, %39, %40 : view f32(?,2,64)
    %42 = view_transpose %41 {perm = [1,0,2]} : view f32(2,?,64)
    %43 = const 1 : index
    %44 "wide" = view_at %42, %43 {axis = 0} : view f32(?,64)
    %45 = view_transpose %4 {perm = [1,0]} : view f32(128,?)
    %46 = const 0 : index
    %47 = const 8 : index
    %48 = const 128 : index
    %49 = const 16 : index
    %50 = view_slice %45, %46, %47, %48, %49 : view f32(128,16)
    %51 = const 1.0 : f32
    %52 = splat %51 : f32(4,4)
    %53 = const 0 : index
    %54 = const 0 : index
    store %50, %53, %54, %52
    %55 = const 0 : index
    %56 = const 0 : index
    %57 = load %44, %55, %56 : f32(4,4)
    %58 = const 0 : index
    %59 = load %15, %58 : f32(4)
    print %57, %59
    %60 = const 128 : index
    %61 = const 128 : index
    %62 = eq %60, %61 : bool
    %63 = eq %8, %8 : bool
    %64 = and %62, %63 : bool
    assert %64 {message = "sizes"}
    return
  }
}
]====]
