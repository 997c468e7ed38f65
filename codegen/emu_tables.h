/* What the hardware does with registers, addresses and descriptors: the emulator's tables.
 *
 * Written after the PTX ISA, on their own: nothing here knows the layouts that the lowering picks
 * (codegen/layouts.h is not included by any emulator file; a source check sees to it), so that a
 * mistake made there is not made here again. They are pinned by index dumps of a GPU:
 * tests/data/sm90a/, made by the program of tests/gpu/dump/.
 *
 *   emu_tables.c   fragments of mma.sync, ldmatrix, stmatrix and wgmma; which shapes are legal
 *   emu_smem.c     wgmma's shared-memory descriptors, tensor maps and their boxes
 *
 * Terms: a lane is 0..31 within its warp; a warp is 0..3 within its warpgroup. An `element` of a
 * fragment counts a lane's elements: register by register, within a register the low bits first
 * (4, 2 or 1 elements of 8, 16 or 32 bits; an f64 element is a register pair of its own).
 *
 * What the matrix units compute, which the emulator does not copy bit by bit
 *   Products are exact. A block of them and the accumulator are shifted to the largest exponent
 *   among them, cut off (not rounded) below some bit and summed; the sum is cut to the result.
 *   sm_70 sums 4 products at a time, sm_80 8 (tf32: 4), sm_90 16 (tf32: 8), with 1 or 2 bits more
 *   than f32 keeps. [Fasi, Higham, Mikaitis, Pranesh: Numerical behavior of NVIDIA tensor cores,
 *   2021; Khattak, Mikaitis: Accurate models of NVIDIA tensor cores, arXiv 2512.07004; Xie et al.:
 *   MMA-Sim, arXiv 2511.10909]
 *   e4m3 and e5m2 on sm_89 and sm_90: 13 bits are kept behind the point of the largest term, so an
 *   f32 result has about 14 good bits. [DeepSeek-V3 report, 3.3.2; MMA-Sim]
 *   tf32 operands are f32 words whose low 13 bits are not looked at (a cut; rounding is cvt.rna's
 *   work). f64 is a chain of IEEE fused multiply-adds. s8, u8: exact, s32 wraps (PTX .satfinite
 *   saturates).
 *   So the emulator's sums equal the GPU's where nothing is cut off: integers with every partial
 *   sum below 2^24 (8-bit floats: 2^13), and in the algebraic domain. It claims nothing more, but
 *   of 8-bit floats, where the unit sums them itself, it cuts as above (emu_short_sum): an H200's
 *   wgmma gives 2^14 + 1 = 2^14, 2^14 + 3 = 2^14 + 2, 2^15 + 3 = 2^15 (numbers.txt). Which part of
 *   an instruction's k is summed at once is not known; the emulator takes all of it.
 *   tests/gpu/dump/ measures these limits; its answers stand in tests/data/sm90a/ beside the maps.
 */
#ifndef KILN_CODEGEN_EMU_TABLES_H
#define KILN_CODEGEN_EMU_TABLES_H

#include "base/dtype.h"

#include <stddef.h>

/* ---- emu_tables.c: fragments --------------------------------------------------------------- */

struct emu_place {
  uint32_t row, col; /* of A [m,k], B [k,n], D [m,n] */
};

enum emu_operand { EMU_A, EMU_B, EMU_D }; /* C lies as D does */

/* An mma.sync instruction (row.col): one warp. */
struct emu_mma {
  uint8_t m, n, k;
  uint8_t bits; /* of an element of A and of B: 8, 16, 32 (tf32) or 64 */
};

/* NULL: PTX has no such mma.sync (dense, on sm_90a) for these types. f32 operands mean tf32. */
const struct emu_mma *emu_mma_find(uint32_t m, uint32_t n, uint32_t k, enum dtype a, enum dtype b,
                                   enum dtype acc);
/* Elements of the operand that one lane holds. */
uint32_t emu_mma_elements(const struct emu_mma *i, enum emu_operand o);
struct emu_place emu_mma_place(const struct emu_mma *i, enum emu_operand o, uint32_t lane,
                               uint32_t element);

/* ldmatrix and stmatrix .m8n8.x{1,2,4}.b16: where in shared memory element e (0, 1) of register
 * `reg` of `lane` lies: `byte` of the row of 16 bytes whose address lane `from` gives. */
struct emu_row {
  uint32_t from, byte;
};
struct emu_row emu_matrix_row(bool trans, uint32_t lane, uint32_t reg, uint32_t e);

/* A wgmma instruction, m = 64. */
struct emu_wgmma {
  uint32_t n, k;
  enum dtype a, b, d; /* f32 as a, b: tf32 */
  bool a_in_regs;
  bool trans_a, trans_b; /* the operand lies M-major (N-major) in shared memory */
};
/* Why PTX has no such instruction, for people; NULL: it has. */
const char *emu_wgmma_refuse(const struct emu_wgmma *i);
/* k of an instruction whose A has this type; 0: no operand of wgmma has it. */
uint32_t emu_wgmma_k(enum dtype a);
/* Elements of D (64 x n) that one lane holds: n / 2. Registers pack two of f16. */
uint32_t emu_wgmma_d_elements(uint32_t n);
struct emu_place emu_wgmma_d_place(uint32_t warp, uint32_t lane, uint32_t element);
/* A (64 x k) from registers, elements of `bits`: 4 registers for every type. */
uint32_t emu_wgmma_a_elements(uint32_t bits);
struct emu_place emu_wgmma_a_place(uint32_t bits, uint32_t warp, uint32_t lane, uint32_t element);

/* ---- emu_smem.c: descriptors --------------------------------------------------------------- */

/* Swizzles of shared memory, alike for TMA and wgmma: within the span, chunks of 16 bytes are
 * permuted by the address bits above: address ^= ((address >> 7) & (span / 16 - 1)) << 4. */
uint32_t emu_swizzle(uint32_t span, uint32_t address); /* span: 0, 32, 64 or 128 bytes */

/* wgmma's matrix descriptor, decoded; bytes. */
struct emu_desc {
  uint32_t start;       /* bits 0-13, units of 16 */
  uint32_t lbo, sbo;    /* leading, stride byte offset: bits 16-29, 32-45, units of 16 */
  uint32_t base_offset; /* bits 49-51 */
  uint32_t span;        /* bits 62-63: 0 none, 1 128, 2 64, 3 32 bytes */
};
struct emu_desc emu_desc_decode(uint64_t bits);
/* Why the emulator does not execute such a descriptor (bits that must be 0; a base offset, whose
 * meaning no dump has pinned), for people; NULL: it does. */
const char *emu_desc_refuse(uint64_t bits);
/* Byte address in shared memory of element (mn, k) of an operand: A's row or B's column mn.
 * bytes: of an element. mn_major: the instruction's transpose bit of the operand. */
uint32_t emu_desc_address(const struct emu_desc *d, uint32_t bytes, bool mn_major, uint32_t mn,
                          uint32_t k);

/* acc + the sum of n products as a unit with short sums gives it: all cut towards zero to 13 bits
 * behind the leading bit of the largest, then summed; the sum cut alike. */
double emu_short_sum(uint32_t n, const double *products, double acc);

/* ---- emu_smem.c: tensor maps --------------------------------------------------------------- */

enum { EMU_TMAP_RANK = 5 };

/* A tensor map (tiled, no interleave, element strides 1). Dims innermost first. */
struct emu_tmap {
  uint64_t base;                 /* address of element 0 */
  uint32_t rank;                 /* 1..5 */
  uint32_t bytes;                /* of an element: 1, 2, 4 or 8 */
  uint64_t dim[EMU_TMAP_RANK];   /* elements */
  int64_t stride[EMU_TMAP_RANK]; /* bytes; stride[0] is not looked at: elements are adjacent */
  uint32_t box[EMU_TMAP_RANK];   /* elements */
  uint32_t span;                 /* swizzle: 0, 32, 64 or 128 bytes */
  bool tf32;                     /* f32 elements are rounded to it on their way in */
  bool legal, writable;          /* all elements are the argument's; which may be written */
};

/* Why the driver would not encode such a map, or why the emulator does not execute it, for people;
 * NULL: fine. */
const char *emu_tmap_refuse(const struct emu_tmap *t);
/* Why a box must not start at these coordinates; NULL: fine. PTX does not say so, an H200 does: the
 * instruction is illegal (tests/gpu/dump/dump.c) where the innermost coordinate is not at a
 * multiple of 16 bytes, and, of a store, where any is negative. */
const char *emu_tmap_refuse_coord(const struct emu_tmap *t, const int32_t *coord, bool store);
/* Why a box must not lie at this address of shared memory; NULL: fine. */
const char *emu_tmap_refuse_shared(const struct emu_tmap *t, uint32_t shared);
/* What a map that rounds makes of the bits of an f32: to nearest, ties to even. Taken for granted
 * until tests/data/sm90a/rounding.txt says so. */
uint32_t emu_tmap_tf32(uint32_t bits);
/* Bytes of a whole box: what a load adds to its mbarrier, out-of-bounds elements included. */
uint32_t emu_tmap_box_bytes(const struct emu_tmap *t);
/* Bytes of shared memory from a box's start to its end. */
uint32_t emu_tmap_shared_bytes(const struct emu_tmap *t);

/* A box moves in pieces of 16 bytes: piece i of emu_tmap_box_bytes / 16, in the box's order. Bytes
 * [first, last) of the piece are elements of the tensor; a load fills the others with 0. A store
 * writes bytes [first, stored): the whole piece if it has any element, also what lies past the end
 * of the innermost dim (measured). */
struct emu_piece {
  uint32_t shared;     /* address of the piece in shared memory */
  uint64_t global;     /* address of byte `first`, if there is one */
  uint8_t first, last; /* first == last: all out of bounds */
  uint8_t stored;
};
struct emu_piece emu_tmap_piece(const struct emu_tmap *t, uint32_t shared, const int32_t *coord,
                                uint32_t i);

#endif
