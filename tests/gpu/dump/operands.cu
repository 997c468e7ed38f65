// What the operands of a matrix instruction hold.
//
// The idea of the maps. An operand's elements are numbered: by thread and element in registers, by
// offset in shared memory. One element is 1 and all others 0 in one operand, in the other operand the
// elements are their own numbers, octal digit by octal digit (0..7 are exact in every type): then
// every element of D that is not 0 tells which element met the one. Nothing is assumed about who lies
// where.
struct setup {
  u64 a, b;             // matrix descriptors less their addresses
  u32 count_a, count_b; // elements that are numbered
  u32 bytes_a;          // of shared memory before B
};

// Element s is 1 if s is `hot` (NONE: whatever s is) and in `set` (0: no set), else 0; with digit >=
// 0 that digit of its number instead of 1, with a seed a random 0..7.
struct fill {
  u32 hot;
  const u32 *set;
  int digit;
  u32 seed;
};
enum { DIGITS = 5 };

__device__ __forceinline__ u32 value(const fill &f, u32 s) {
  if ((f.hot != NONE && s != f.hot) || (f.set && !(f.set[s >> 5] >> (s & 31) & 1)))
    return 0;
  if (f.seed) return hash(f.seed + s) & 7;
  return f.digit < 0 ? 1 : s >> 3 * f.digit & 7;
}

__device__ const u32 encoded[8] = ENCODE;

#if ELEMENT_BITS == 64
enum { PACK = 1 };
__device__ __forceinline__ REG make(const u32 *v) { return (REG)v[0]; }
#else
enum { PACK = 32 / ELEMENT_BITS };
__device__ __forceinline__ REG make(const u32 *v) {
  REG r = 0;
#pragma unroll
  for (int e = 0; e < PACK; e++) r |= encoded[v[e]] << e * (ELEMENT_BITS & 31);
  return r;
}
#endif
enum { D_ELEMENTS = D_REGS * D_PACK };

template <int REGS> __device__ __forceinline__ void fill_regs(REG *r, const fill &f) {
#pragma unroll
  for (int i = 0; i < REGS; i++) {
    u32 v[PACK];
    for (int e = 0; e < PACK; e++) v[e] = value(f, (threadIdx.x * REGS + i) * PACK + e);
    r[i] = make(v);
  }
}
