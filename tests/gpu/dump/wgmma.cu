// wgmma: B, and A unless it has registers, in shared memory.
__device__ __forceinline__ void fill_shared(u8 *to, u32 count, const fill &f) {
  for (u32 s = threadIdx.x; s < count; s += THREADS) {
#if ELEMENT_BITS == 8
    to[s] = (u8)encoded[value(f, s)];
#elif ELEMENT_BITS == 16
    ((u16 *)to)[s] = (u16)encoded[value(f, s)];
#else
    ((u32 *)to)[s] = encoded[value(f, s)];
#endif
  }
}

__device__ __forceinline__ void accumulate(DREG *d, const fill &fa, const fill &fb, const setup &p) {
  u8 *memory = shared_memory();
  const u32 at = shared_address(memory);
  __syncthreads();
#if A_REGS
  REG a[A_REGS];
  fill_regs<A_REGS>(a, fa);
#else
  fill_shared(memory, p.count_a, fa);
  const u64 desc_a = p.a + ((at & 0x3ffff) >> 4);
#endif
  fill_shared(memory + p.bytes_a, p.count_b, fb);
  const u64 desc_b = p.b + (((at + p.bytes_a) & 0x3ffff) >> 4);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  MULTIPLY
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  // No use of d moves to before the wait.
#pragma unroll
  for (int i = 0; i < D_REGS; i++) asm volatile("" : D_CONSTRAINT(d[i])::"memory");
}
