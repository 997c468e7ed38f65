/* Fragments of the matrix instructions, after the PTX ISA 9.0, "Matrix multiply-accumulate
 * operations using mma instruction", "ldmatrix", "stmatrix" and "Register fragments for wgmma".
 * See emu_tables.h. */
#include "codegen/emu_tables.h"

#include "base/check.h"

#include <limits.h>
#include <math.h>

/* One row: a shape and the types it takes. `a` and `b` may be any two of a class. */
enum type_class { T_F16, T_BF16, T_TF32, T_FP8, T_INT8, T_F64 };
enum acc_class { ACC_F16_F32, ACC_F32, ACC_S32, ACC_F64 };

static const struct mma_row {
  struct emu_mma i;
  enum type_class type;
  enum acc_class acc;
} mma_rows[] = {
    {{16, 8, 16, 16}, T_F16, ACC_F16_F32}, {{16, 8, 8, 16}, T_F16, ACC_F16_F32},
    {{16, 8, 16, 16}, T_BF16, ACC_F32},    {{16, 8, 8, 16}, T_BF16, ACC_F32},
    {{16, 8, 8, 32}, T_TF32, ACC_F32},     {{16, 8, 4, 32}, T_TF32, ACC_F32},
    {{16, 8, 32, 8}, T_FP8, ACC_F16_F32},  {{16, 8, 32, 8}, T_INT8, ACC_S32},
    {{16, 8, 16, 8}, T_INT8, ACC_S32},     {{8, 8, 4, 64}, T_F64, ACC_F64},
    {{16, 8, 4, 64}, T_F64, ACC_F64},      {{16, 8, 8, 64}, T_F64, ACC_F64},
    {{16, 8, 16, 64}, T_F64, ACC_F64},
};

enum { SHORT_BITS = 13 };

double emu_short_sum(uint32_t n, const double *products, double acc) {
  int most = INT_MIN, e;
  for (uint32_t k = 0; k <= n; k++) {
    double x = k < n ? products[k] : acc;
    if (!isfinite(x)) { /* infinities and NaN are kept whatever is cut */
      double sum = acc;
      for (uint32_t i = 0; i < n; i++)
        sum += products[i];
      return sum;
    }
    frexp(x, &e);
    if (x != 0 && e > most)
      most = e;
  }
  if (most == INT_MIN)
    return acc;
  double unit = ldexp(1, most - 1 - SHORT_BITS), sum = trunc(acc / unit);
  for (uint32_t k = 0; k < n; k++)
    sum += trunc(products[k] / unit);
  sum *= unit;
  if (sum == 0)
    return 0;
  frexp(sum, &e);
  unit = ldexp(1, e - 1 - SHORT_BITS);
  return trunc(sum / unit) * unit;
}

static bool in_class(enum type_class c, enum dtype t) {
  switch (c) {
  case T_F16: return t == DT_F16;
  case T_BF16: return t == DT_BF16;
  case T_TF32: return t == DT_F32;
  case T_FP8: return t == DT_E4M3 || t == DT_E5M2;
  case T_INT8: return t == DT_S8 || t == DT_U8;
  case T_F64: return t == DT_F64;
  }
  KILN_UNREACHABLE();
}

static bool accumulates(enum acc_class c, enum dtype t) {
  switch (c) {
  case ACC_F16_F32: return t == DT_F16 || t == DT_F32;
  case ACC_F32: return t == DT_F32;
  case ACC_S32: return t == DT_S32;
  case ACC_F64: return t == DT_F64;
  }
  KILN_UNREACHABLE();
}

const struct emu_mma *emu_mma_find(uint32_t m, uint32_t n, uint32_t k, enum dtype a, enum dtype b,
                                   enum dtype acc) {
  for (size_t r = 0; r < sizeof mma_rows / sizeof *mma_rows; r++) {
    const struct mma_row *row = &mma_rows[r];
    if (row->i.m == m && row->i.n == n && row->i.k == k && in_class(row->type, a) &&
        in_class(row->type, b) && accumulates(row->acc, acc))
      return &row->i;
  }
  return NULL;
}

uint32_t emu_mma_elements(const struct emu_mma *i, enum emu_operand o) {
  switch (o) {
  case EMU_A: return (uint32_t)i->m * i->k / 32;
  case EMU_B: return (uint32_t)i->k * i->n / 32;
  case EMU_D: return (uint32_t)i->m * i->n / 32;
  }
  KILN_UNREACHABLE();
}

/* Elements of one register (f64: of one pair). */
static uint32_t packed(uint32_t bits) {
  return bits < 32 ? 32 / bits : 1;
}

/* A: with g = lane / 4 and t = lane % 4, a register holds p adjacent elements of one row:
 *
 *            k: p t ..      4 p + p t ..
 *   row g       register 0  register 2        (registers 4, 6, ... : k goes on in steps of 4 p)
 *   row g + 8   register 1  register 3
 *
 * One rule for all types: PTX's tables for 8, 16, 32 and 64 bits differ in p alone. m8n8k4 has the
 * upper row only. */
static struct emu_place place_a(uint32_t rows, uint32_t bits, uint32_t lane, uint32_t element) {
  uint32_t p = packed(bits), reg = element / p, halves = rows / 8;
  return (struct emu_place){lane / 4 + 8 * (reg % halves),
                            4 * p * (reg / halves) + p * (lane % 4) + element % p};
}

struct emu_place emu_mma_place(const struct emu_mma *i, enum emu_operand o, uint32_t lane,
                               uint32_t element) {
  KILN_ASSERT(lane < 32 && element < emu_mma_elements(i, o));
  uint32_t p = packed(i->bits), g = lane / 4, t = lane % 4;
  switch (o) {
  case EMU_A: return place_a(i->m, i->bits, lane, element);
  case EMU_B: return (struct emu_place){4 * p * (element / p) + p * t + element % p, g};
  case EMU_D: return (struct emu_place){g + 8 * (element / 2), 2 * t + element % 2};
  }
  KILN_UNREACHABLE();
}

/* Matrix `reg` of 8 rows: lane 8 * reg + r gives the address of row r. A lane holds the adjacent
 * pair at row lane / 4, columns 2 (lane % 4) + {0, 1}; transposed, rows and columns change
 * places. */
struct emu_row emu_matrix_row(bool trans, uint32_t lane, uint32_t reg, uint32_t e) {
  KILN_ASSERT(lane < 32 && reg < 4 && e < 2);
  uint32_t row = lane / 4, col = 2 * (lane % 4) + e;
  if (trans)
    return (struct emu_row){8 * reg + col, 2 * row};
  return (struct emu_row){8 * reg + row, 2 * col};
}

uint32_t emu_wgmma_k(enum dtype a) {
  switch (a) {
  case DT_F16:
  case DT_BF16: return 16;
  case DT_F32: return 8;
  case DT_E4M3:
  case DT_E5M2:
  case DT_S8:
  case DT_U8: return 32;
  case DT_BOOL:
  case DT_INDEX:
  case DT_S4:
  case DT_U4:
  case DT_S32:
  case DT_S64:
  case DT_F64:
  case DT_COUNT: break;
  }
  return 0;
}

const char *emu_wgmma_refuse(const struct emu_wgmma *i) {
  static const struct {
    enum type_class type;
    enum acc_class acc;
  } rows[] = {{T_F16, ACC_F16_F32},
              {T_BF16, ACC_F32},
              {T_TF32, ACC_F32},
              {T_FP8, ACC_F16_F32},
              {T_INT8, ACC_S32}};
  const size_t count = sizeof rows / sizeof *rows;
  size_t r = 0;
  while (r < count && !in_class(rows[r].type, i->a))
    r++;
  if (r == count)
    return "wgmma takes f16, bf16, tf32 (f32), e4m3, e5m2, s8 and u8 operands";
  if (!in_class(rows[r].type, i->b))
    return "wgmma's operands are of one type, or any two of e4m3 and e5m2, or of s8 and u8";
  if (!accumulates(rows[r].acc, i->d))
    return "wgmma accumulates f16, e4m3 and e5m2 in f16 or f32, bf16 and tf32 in f32, s8 and u8 in "
           "s32";
  if (i->k != emu_wgmma_k(i->a))
    return "wgmma's k is 32 bytes of an operand's row: 8, 16 or 32 elements";
  if (i->n < 8 || i->n > 256 || i->n % 8)
    return "wgmma's n is a multiple of 8 from 8 to 256";
  if (rows[r].type == T_INT8 && i->n % 16 && i->n > 24)
    return "wgmma's n for s8 and u8 is 8, 24 or a multiple of 16";
  if ((i->trans_a || i->trans_b) && rows[r].type != T_F16 && rows[r].type != T_BF16)
    return "wgmma reads M-major or N-major operands of f16 and bf16 alone; others lie K-major";
  if (i->a_in_regs && i->trans_a)
    return "wgmma's A from registers has no transpose";
  return NULL;
}

uint32_t emu_wgmma_d_elements(uint32_t n) {
  return n / 2;
}

struct emu_place emu_wgmma_d_place(uint32_t warp, uint32_t lane, uint32_t element) {
  KILN_ASSERT(warp < 4 && lane < 32 && element < 128);
  uint32_t g = lane / 4, t = lane % 4;
  return (struct emu_place){16 * warp + g + 8 * (element / 2 % 2),
                            8 * (element / 4) + 2 * t + element % 2};
}

uint32_t emu_wgmma_a_elements(uint32_t bits) {
  return 4 * packed(bits);
}

/* A warp's 16 rows lie as those of mma.sync with the same k. */
struct emu_place emu_wgmma_a_place(uint32_t bits, uint32_t warp, uint32_t lane, uint32_t element) {
  KILN_ASSERT(warp < 4 && lane < 32 && element < emu_wgmma_a_elements(bits));
  struct emu_place p = place_a(16, bits, lane, element);
  p.row += 16 * warp;
  return p;
}
