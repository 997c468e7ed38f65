// Index dumps, what all sources begin with. For a matrix instruction dump.c puts before this: REG (a
// register of A or B), ELEMENT_BITS, DREG (a register of D; in asm D_CONSTRAINT), D_PACK,
// D_VALUE(register, e), A_REGS (0: A lies in shared memory), B_REGS, D_REGS, THREADS, KERNELS (bits:
// reach, meet, sums, product), ENCODE (bits of the integers 0..7 as elements) and MULTIPLY, the
// instruction.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
#define NONE 0xffffffffu

__device__ __forceinline__ u32 shared_address(const void *p) {
  u32 r;
  asm("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }" : "=r"(r) : "l"(p));
  return r;
}

// Shared memory from its first multiple of 1024 on.
__device__ __forceinline__ u8 *shared_memory() {
  extern __shared__ __align__(1024) u8 memory[];
  return memory + (-shared_address(memory) & 1023);
}

__device__ __forceinline__ u32 hash(u32 x) {
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  return x ^ x >> 16;
}
