-- mergeable loops: online softmax with a merge function, a scalar, constants and captured values
local limit = a.E:size(0) // 2
local m, l = full(f32, -inf, 4, 1), zeros(f32, 4, 1)
local best, seen = -inf, 0
local function join(p, q)
  local mx = max(p.m, q.m)
  return {m = mx, l = p.l * exp2(p.m - mx) + q.l * exp2(q.m - mx), best = max(p.best, q.best),
          seen = p.seen + q.seen - limit + limit}
end
for n in range(0, d.K, 8, {merge = join}) do
  local x = where(iota(1, 8) + n < d.K, cast(a.A:tile({n}, {8}):row(), f32), -inf) + zeros(f32, 4, 1)
  local mx = max(m, rowmax(x))
  l = l * exp2(m - mx) + rowsum(exp2(x - mx))
  m, best, seen = mx, max(best, amax(x)), seen + 1
end
for k in range(0, 4, {merge = function(p) return {best = 2} end}) do best = best * 2 end
a.C:store({0}, (m * l):reshape(4) * (best + cast(seen, f32)))
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 2 : index
    %12 "limit" = floordiv %4, %11 : index
    %13 = const -inf : f32
    %14 "m" = splat %13 : f32(4,1)
    %15 = const 0.0 : f32
    %16 "l" = splat %15 : f32(4,1)
    %17 = const 0 : index
    %18 = const 8 : index
    %19 = const -inf : f32
    %20 = const 0 : index
    %21 "m", %22 "l", %23 "best", %24 "seen" = for %25 "n": index = %17, %3, %18 carry(%26 "m": f32(4,1) = %14, %27 "l": f32(4,1) = %16, %28 "best": f32 = %19, %29 "seen": index = %20) : f32(4,1), f32(4,1), f32, index {
      %30 = iota {axis = 1} : index(1,8)
      %31 = splat %25 : index(1,8)
      %32 = add %30, %31 : index(1,8)
      %33 = splat %3 : index(1,8)
      %34 = lt %32, %33 : bool(1,8)
      %35 = load %0, %25 : bf16(8)
      %36 = reshape %35 : bf16(1,8)
      %37 = cast %36 : f32(1,8)
      %38 = const -inf : f32
      %39 = splat %38 : f32(1,8)
      %40 = select %34, %37, %39 : f32(1,8)
      %41 = const 0.0 : f32
      %42 = splat %41 : f32(4,1)
      %43 = broadcast %40 : f32(4,8)
      %44 = broadcast %42 : f32(4,8)
      %45 "x" = add %43, %44 : f32(4,8)
      %46 = reduce_max %45 {axis = 1} : f32(4,1)
      %47 "mx" = max %26, %46 : f32(4,1)
      %48 = sub %26, %47 : f32(4,1)
      %49 = exp2 %48 : f32(4,1)
      %50 = mul %27, %49 : f32(4,1)
      %51 = broadcast %47 : f32(4,8)
      %52 = sub %45, %51 : f32(4,8)
      %53 = exp2 %52 : f32(4,8)
      %54 = reduce_sum %53 {axis = 1} : f32(4,1)
      %55 "l" = add %50, %54 : f32(4,1)
      %56 = reduce_max %45 {axis = 1} : f32(4,1)
      %57 = reduce_max %56 {axis = 0} : f32(1,1)
      %58 = item %57 : f32
      %59 "best" = max %28, %58 : f32
      %60 = const 1 : index
      %61 "seen" = add %29, %60 : index
      yield %47, %55, %59, %61
    }
    %62 "m", %63 "l", %64 "best", %65 "seen" = merge %21, %22, %23, %24 : f32(4,1), f32(4,1), f32, index (%66 "m": f32(4,1), %67 "l": f32(4,1), %68 "best": f32, %69 "seen": index, %70 "m": f32(4,1), %71 "l": f32(4,1), %72 "best": f32, %73 "seen": index) {
      %74 "mx" = max %66, %70 : f32(4,1)
      %75 = sub %66, %74 : f32(4,1)
      %76 = exp2 %75 : f32(4,1)
      %77 = mul %67, %76 : f32(4,1)
      %78 = sub %70, %74 : f32(4,1)
      %79 = exp2 %78 : f32(4,1)
      %80 = mul %71, %79 : f32(4,1)
      %81 = add %77, %80 : f32(4,1)
      %82 = max %68, %72 : f32
      %83 = add %69, %73 : index
      %84 = sub %83, %12 : index
      %85 = add %84, %12 : index
      yield %74, %81, %82, %85
    }
    %86 = const 0 : index
    %87 = const 4 : index
    %88 = const 1 : index
    %89 "best" = for %90 "k": index = %86, %87, %88 carry(%91 "best": f32 = %64) : f32 {
      %92 = const 2.0 : f32
      %93 "best" = mul %91, %92 : f32
      yield %93
    }
    %94 "best" = merge %89 : f32 (%95 "best": f32, %96 "best": f32) {
      %97 = const 2.0 : f32
      yield %97
    }
    %98 = mul %62, %63 : f32(4,1)
    %99 = reshape %98 : f32(4)
    %100 = cast %65 : f32
    %101 = add %94, %100 : f32
    %102 = splat %101 : f32(4)
    %103 = mul %99, %102 : f32(4)
    %104 = const 0 : index
    store %2, %104, %103
    return
  }
}
]====]
