// mma.sync: both operands in the registers of one warp.
__device__ __forceinline__ void accumulate(DREG *d, const fill &fa, const fill &fb, const setup &) {
  REG a[A_REGS], b[B_REGS];
  fill_regs<A_REGS>(a, fa);
  fill_regs<B_REGS>(b, fb);
  MULTIPLY
}
