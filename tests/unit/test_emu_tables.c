/* The emulator's tables: PTX's fragment tables written out per instruction, worked examples of
 * addresses, every element once, and TMA and wgmma agreeing on where an element lies.
 *
 * What a GPU says is in test_emu_dump.c. */
#include "codegen/emu_tables.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- fragments: PTX's tables ---- */

/* PTX ISA, one table per instruction: the element's row (A, D), k (B's row) and column as written
 * there for element i of the lane with groupID g and threadID_in_group t. */
struct ptx_table {
  uint32_t m, n, k;
  enum dtype a, b, acc;
  uint32_t counts[3];
  void (*place)(enum emu_operand o, uint32_t g, uint32_t t, uint32_t i, uint32_t *row,
                uint32_t *col);
};

static void d_m16n8(uint32_t g, uint32_t t, uint32_t i, uint32_t *row, uint32_t *col) {
  *row = i < 2 ? g : g + 8;
  *col = t * 2 + (i & 1);
}

static void m16n8k16_16bit(enum emu_operand o, uint32_t g, uint32_t t, uint32_t i, uint32_t *row,
                           uint32_t *col) {
  if (o == EMU_D) {
    d_m16n8(g, t, i, row, col);
  } else if (o == EMU_A) {
    *row = (i < 2 || (i >= 4 && i < 6)) ? g : g + 8;
    *col = i < 4 ? t * 2 + (i & 1) : t * 2 + (i & 1) + 8;
  } else {
    *row = i < 2 ? t * 2 + (i & 1) : t * 2 + (i & 1) + 8;
    *col = g;
  }
}

static void m16n8k8_16bit(enum emu_operand o, uint32_t g, uint32_t t, uint32_t i, uint32_t *row,
                          uint32_t *col) {
  if (o == EMU_D) {
    d_m16n8(g, t, i, row, col);
  } else if (o == EMU_A) {
    *row = i < 2 ? g : g + 8;
    *col = t * 2 + (i & 1);
  } else {
    *row = t * 2 + i;
    *col = g;
  }
}

static void m16n8k8_tf32(enum emu_operand o, uint32_t g, uint32_t t, uint32_t i, uint32_t *row,
                         uint32_t *col) {
  if (o == EMU_D) {
    d_m16n8(g, t, i, row, col);
  } else if (o == EMU_A) {
    *row = (i == 0 || i == 2) ? g : g + 8;
    *col = i < 2 ? t : t + 4;
  } else {
    *row = i == 0 ? t : t + 4;
    *col = g;
  }
}

static void m16n8k4(enum emu_operand o, uint32_t g, uint32_t t, uint32_t i, uint32_t *row,
                    uint32_t *col) {
  if (o == EMU_D) {
    d_m16n8(g, t, i, row, col);
  } else if (o == EMU_A) {
    *row = i == 0 ? g : g + 8;
    *col = t;
  } else {
    *row = t;
    *col = g;
  }
}

static void m16n8k32_8bit(enum emu_operand o, uint32_t g, uint32_t t, uint32_t i, uint32_t *row,
                          uint32_t *col) {
  if (o == EMU_D) {
    d_m16n8(g, t, i, row, col);
  } else if (o == EMU_A) {
    *row = (i < 4 || (i >= 8 && i < 12)) ? g : g + 8;
    *col = i < 8 ? t * 4 + (i & 3) : t * 4 + (i & 3) + 16;
  } else {
    *row = i < 4 ? t * 4 + (i & 3) : t * 4 + (i & 3) + 16;
    *col = g;
  }
}

static void m16n8k16_8bit(enum emu_operand o, uint32_t g, uint32_t t, uint32_t i, uint32_t *row,
                          uint32_t *col) {
  if (o == EMU_D) {
    d_m16n8(g, t, i, row, col);
  } else if (o == EMU_A) {
    *row = i < 4 ? g : g + 8;
    *col = t * 4 + (i & 3);
  } else {
    *row = t * 4 + (i & 3);
    *col = g;
  }
}

static void m8n8k4_f64(enum emu_operand o, uint32_t g, uint32_t t, uint32_t i, uint32_t *row,
                       uint32_t *col) {
  if (o == EMU_D) {
    *row = g;
    *col = t * 2 + i;
  } else {
    *row = o == EMU_A ? g : t;
    *col = o == EMU_A ? t : g;
  }
}

static void m16n8k16_f64(enum emu_operand o, uint32_t g, uint32_t t, uint32_t i, uint32_t *row,
                         uint32_t *col) {
  if (o == EMU_D) {
    d_m16n8(g, t, i, row, col);
  } else if (o == EMU_A) {
    *row = i % 2 == 0 ? g : g + 8;
    *col = i / 2 * 4 + t;
  } else {
    *row = i * 4 + t;
    *col = g;
  }
}

static const struct ptx_table tables[] = {
    {16, 8, 16, DT_F16, DT_F16, DT_F32, {8, 4, 4}, m16n8k16_16bit},
    {16, 8, 16, DT_F16, DT_F16, DT_F16, {8, 4, 4}, m16n8k16_16bit},
    {16, 8, 16, DT_BF16, DT_BF16, DT_F32, {8, 4, 4}, m16n8k16_16bit},
    {16, 8, 8, DT_F16, DT_F16, DT_F32, {4, 2, 4}, m16n8k8_16bit},
    {16, 8, 8, DT_BF16, DT_BF16, DT_F32, {4, 2, 4}, m16n8k8_16bit},
    {16, 8, 8, DT_F32, DT_F32, DT_F32, {4, 2, 4}, m16n8k8_tf32},
    {16, 8, 4, DT_F32, DT_F32, DT_F32, {2, 1, 4}, m16n8k4},
    {16, 8, 32, DT_E4M3, DT_E4M3, DT_F32, {16, 8, 4}, m16n8k32_8bit},
    {16, 8, 32, DT_E4M3, DT_E5M2, DT_F32, {16, 8, 4}, m16n8k32_8bit},
    {16, 8, 32, DT_E5M2, DT_E4M3, DT_F16, {16, 8, 4}, m16n8k32_8bit},
    {16, 8, 32, DT_S8, DT_S8, DT_S32, {16, 8, 4}, m16n8k32_8bit},
    {16, 8, 32, DT_U8, DT_S8, DT_S32, {16, 8, 4}, m16n8k32_8bit},
    {16, 8, 16, DT_S8, DT_U8, DT_S32, {8, 4, 4}, m16n8k16_8bit},
    {8, 8, 4, DT_F64, DT_F64, DT_F64, {1, 1, 2}, m8n8k4_f64},
    {16, 8, 4, DT_F64, DT_F64, DT_F64, {2, 1, 4}, m16n8k4},
    {16, 8, 8, DT_F64, DT_F64, DT_F64, {4, 2, 4}, m16n8k8_tf32},
    {16, 8, 16, DT_F64, DT_F64, DT_F64, {8, 4, 4}, m16n8k16_f64},
};
enum { TABLES = sizeof tables / sizeof *tables };

static void mma_is_as_ptx_writes_it(void **state) {
  (void)state;
  for (unsigned x = 0; x < TABLES; x++) {
    const struct ptx_table *p = &tables[x];
    const struct emu_mma *i = emu_mma_find(p->m, p->n, p->k, p->a, p->b, p->acc);
    assert_non_null(i);
    const uint32_t rows[3] = {p->m, p->k, p->m}, cols[3] = {p->k, p->n, p->n};
    for (int o = EMU_A; o <= EMU_D; o++) {
      uint8_t seen[16 * 32] = {0};
      assert_int_equal(emu_mma_elements(i, (enum emu_operand)o), p->counts[o]);
      for (uint32_t lane = 0; lane < 32; lane++)
        for (uint32_t e = 0; e < p->counts[o]; e++) {
          struct emu_place at = emu_mma_place(i, (enum emu_operand)o, lane, e);
          uint32_t row, col;
          p->place((enum emu_operand)o, lane >> 2, lane % 4, e, &row, &col);
          if (at.row != row || at.col != col)
            fail_msg("m%un%uk%u %s operand %d lane %u element %u: (%u, %u), PTX has (%u, %u)", p->m,
                     p->n, p->k, dtype_name(p->a), o, lane, e, at.row, at.col, row, col);
          assert_true(at.row < rows[o] && at.col < cols[o]);
          assert_int_equal(seen[at.row * cols[o] + at.col]++, 0);
        }
    }
  }
}

static void mma_knows_what_there_is_not(void **state) {
  (void)state;
  assert_null(emu_mma_find(16, 8, 16, DT_F16, DT_BF16, DT_F32));
  assert_null(emu_mma_find(16, 8, 16, DT_BF16, DT_BF16, DT_BF16));
  assert_null(emu_mma_find(16, 8, 16, DT_BF16, DT_BF16, DT_F16));
  assert_null(emu_mma_find(16, 8, 16, DT_F32, DT_F32, DT_F32));
  assert_null(emu_mma_find(16, 8, 32, DT_S8, DT_E4M3, DT_S32));
  assert_null(emu_mma_find(16, 8, 32, DT_S8, DT_S8, DT_F32));
  assert_null(emu_mma_find(16, 8, 64, DT_S8, DT_S8, DT_S32));
  assert_null(emu_mma_find(8, 8, 4, DT_F64, DT_F64, DT_F32));
  assert_null(emu_mma_find(8, 8, 4, DT_F16, DT_F16, DT_F32));
}

/* ldmatrix: PTX's picture: lane 4 r + c / 2 holds (r, c) and (r, c + 1); .trans: of the transpose;
 * together with mma's A: x4 of a 16 x 16 tile whose lanes 0-15 point at rows, 16-31 at rows' second
 * halves, is mma's A. */
static void ldmatrix_loads_operands(void **state) {
  (void)state;
  const struct emu_mma *i = emu_mma_find(16, 8, 16, DT_F16, DT_F16, DT_F32);
  for (uint32_t lane = 0; lane < 32; lane++)
    for (uint32_t reg = 0; reg < 4; reg++)
      for (uint32_t e = 0; e < 2; e++) {
        struct emu_row r = emu_matrix_row(false, lane, reg, e);
        assert_int_equal(r.from / 8, reg);
        uint32_t row = r.from % 16, col = r.from / 16 * 8 + r.byte / 2;
        struct emu_place a = emu_mma_place(i, EMU_A, lane, 2 * reg + e);
        assert_true(a.row == row && a.col == col);
        /* B [k,n] with n adjacent in memory: transposed, lanes 0-15 point at rows k. */
        struct emu_row t = emu_matrix_row(true, lane, reg & 1, e);
        struct emu_place b = emu_mma_place(i, EMU_B, lane, 2 * (reg & 1) + e);
        assert_true(b.row == t.from && b.col == t.byte / 2);
      }
  /* Lane 5 of a transposed x1: column 1, rows 2 and 3. */
  assert_int_equal(emu_matrix_row(true, 5, 0, 0).from, 2);
  assert_int_equal(emu_matrix_row(true, 5, 0, 1).from, 3);
  assert_int_equal(emu_matrix_row(true, 5, 0, 1).byte, 2);
}

/* hopper-style epilogue: stmatrix.x4 of column octets j, j + 1 of wgmma's D, lane l pointing at row
 * 16 w + (l & 7) + 8 ((l >> 3) & 1), chunk l >> 4, stores D row by row. */
static void stmatrix_stores_an_accumulator(void **state) {
  (void)state;
  for (uint32_t warp = 0; warp < 4; warp++)
    for (uint32_t lane = 0; lane < 32; lane++)
      for (uint32_t reg = 0; reg < 4; reg++)
        for (uint32_t e = 0; e < 2; e++) {
          struct emu_row r = emu_matrix_row(false, lane, reg, e);
          uint32_t row = 16 * warp + (r.from & 7) + 8 * (r.from >> 3 & 1);
          uint32_t col = 8 * (r.from >> 4) + r.byte / 2;
          struct emu_place d = emu_wgmma_d_place(warp, lane, 2 * reg + e);
          assert_true(d.row == row && d.col == col);
        }
}

static void wgmma_fragments(void **state) {
  (void)state;
  /* D: d[4j+0,1] at row 16 w + l / 4, columns 8 j + 2 (l % 4) + {0, 1}; d[4j+2,3] 8 rows below. */
  static uint8_t seen[64][256];
  memset(seen, 0, sizeof seen);
  assert_int_equal(emu_wgmma_d_elements(256), 128);
  for (uint32_t w = 0; w < 4; w++)
    for (uint32_t l = 0; l < 32; l++)
      for (uint32_t j = 0; j < 32; j++)
        for (uint32_t e = 0; e < 4; e++) {
          struct emu_place p = emu_wgmma_d_place(w, l, 4 * j + e);
          assert_int_equal(p.row, 16 * w + l / 4 + (e >= 2 ? 8 : 0));
          assert_int_equal(p.col, 8 * j + 2 * (l % 4) + (e & 1));
          assert_int_equal(seen[p.row][p.col]++, 0);
        }
  /* A from registers, 16 bits: for k16 block kk, a = D's registers 8 kk .. 8 kk + 7 in order. */
  for (uint32_t w = 0; w < 4; w++)
    for (uint32_t l = 0; l < 32; l++)
      for (uint32_t e = 0; e < 8; e++) {
        struct emu_place a = emu_wgmma_a_place(16, w, l, e), d = emu_wgmma_d_place(w, l, 8 * 3 + e);
        assert_true(a.row == d.row && a.col + 16 * 3 == d.col);
      }
  static const uint32_t bits[] = {8, 16, 32};
  for (unsigned b = 0; b < 3; b++) {
    uint8_t held[64][32] = {{0}};
    for (uint32_t w = 0; w < 4; w++)
      for (uint32_t l = 0; l < 32; l++)
        for (uint32_t e = 0; e < emu_wgmma_a_elements(bits[b]); e++) {
          struct emu_place a = emu_wgmma_a_place(bits[b], w, l, e);
          assert_true(a.row < 64 && a.col < 256 / bits[b]);
          assert_int_equal(held[a.row][a.col]++, 0);
        }
  }
  /* 8 bits: a0 = (g, 4t ..), a1 = (g + 8, 4t ..), a2 = (g, 16 + 4t ..), a3. Lane 6: g 1, t 2. */
  struct emu_place a = emu_wgmma_a_place(8, 2, 6, 0);
  assert_true(a.row == 33 && a.col == 8);
  a = emu_wgmma_a_place(8, 2, 6, 5);
  assert_true(a.row == 41 && a.col == 9);
  a = emu_wgmma_a_place(8, 2, 6, 11);
  assert_true(a.row == 33 && a.col == 27);
  /* tf32: a0 (g, t), a1 (g + 8, t), a2 (g, t + 4), a3 (g + 8, t + 4). */
  a = emu_wgmma_a_place(32, 0, 6, 2);
  assert_true(a.row == 1 && a.col == 6);
  a = emu_wgmma_a_place(32, 3, 6, 1);
  assert_true(a.row == 57 && a.col == 2);
}

static void wgmma_shapes(void **state) {
  (void)state;
  const struct emu_wgmma ok[] = {
      {8, 16, DT_BF16, DT_BF16, DT_F32, false, true, true},
      {256, 16, DT_F16, DT_F16, DT_F16, true, false, true},
      {176, 16, DT_BF16, DT_BF16, DT_F32, true, false, false},
      {248, 8, DT_F32, DT_F32, DT_F32, false, false, false},
      {192, 32, DT_E4M3, DT_E5M2, DT_F32, true, false, false},
      {24, 32, DT_S8, DT_U8, DT_S32, false, false, false},
      {240, 32, DT_U8, DT_U8, DT_S32, true, false, false},
  };
  for (unsigned i = 0; i < sizeof ok / sizeof *ok; i++)
    assert_null(emu_wgmma_refuse(&ok[i]));
  static const struct {
    struct emu_wgmma i;
    const char *says;
  } bad[] = {
      {{260, 16, DT_BF16, DT_BF16, DT_F32, 0, 0, 0}, "multiple of 8"},
      {{12, 16, DT_BF16, DT_BF16, DT_F32, 0, 0, 0}, "multiple of 8"},
      {{0, 16, DT_BF16, DT_BF16, DT_F32, 0, 0, 0}, "multiple of 8"},
      {{40, 32, DT_S8, DT_S8, DT_S32, 0, 0, 0}, "multiple of 16"},
      {{64, 16, DT_BF16, DT_F16, DT_F32, 0, 0, 0}, "one type"},
      {{64, 32, DT_S8, DT_E4M3, DT_S32, 0, 0, 0}, "one type"},
      {{64, 16, DT_BF16, DT_BF16, DT_BF16, 0, 0, 0}, "accumulates"},
      {{64, 16, DT_BF16, DT_BF16, DT_F16, 0, 0, 0}, "accumulates"},
      {{64, 32, DT_BF16, DT_BF16, DT_F32, 0, 0, 0}, "k is 32 bytes"},
      {{64, 8, DT_F32, DT_F32, DT_F32, 0, 0, 1}, "K-major"},
      {{64, 32, DT_E4M3, DT_E4M3, DT_F32, 0, 1, 0}, "K-major"},
      {{64, 16, DT_F16, DT_F16, DT_F32, 1, 1, 0}, "no transpose"},
      {{64, 4, DT_F64, DT_F64, DT_F64, 0, 0, 0}, "wgmma takes"},
  };
  for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
    const char *why = emu_wgmma_refuse(&bad[i].i);
    assert_non_null(why);
    assert_non_null(strstr(why, bad[i].says));
  }
}

/* ---- descriptors ---- */

static uint64_t descriptor(uint32_t start, uint32_t lbo, uint32_t sbo, uint64_t mode) {
  return (start & 0x3ffff) >> 4 | (uint64_t)(lbo >> 4) << 16 | (uint64_t)(sbo >> 4) << 32 |
         mode << 62;
}

static void descriptor_bits(void **state) {
  (void)state;
  /* The prototype's: high word 0x40000040, low word start >> 4 | 1 << 16. */
  uint64_t bits = 0x40000040ull << 32 | 1ull << 16 | (0x2400 >> 4);
  assert_null(emu_desc_refuse(bits));
  struct emu_desc d = emu_desc_decode(bits);
  assert_int_equal(d.start, 0x2400);
  assert_int_equal(d.lbo, 16);
  assert_int_equal(d.sbo, 1024);
  assert_int_equal(d.span, 128);
  assert_int_equal(d.base_offset, 0);
  d = emu_desc_decode(descriptor(0x3fff0, 0x3fff0, 0x3fff0, 0));
  assert_true(d.start == 0x3fff0 && d.lbo == 0x3fff0 && d.sbo == 0x3fff0 && d.span == 0);
  assert_int_equal(emu_desc_decode(descriptor(0, 0, 0, 2)).span, 64);
  assert_int_equal(emu_desc_decode(descriptor(0, 0, 0, 3)).span, 32);
  assert_int_equal(emu_desc_decode(5ull << 49).base_offset, 5);
  assert_non_null(strstr(emu_desc_refuse(1ull << 49), "base offset"));
  static const uint8_t unused[] = {14, 15, 30, 31, 46, 47, 48, 52, 57, 61};
  for (unsigned i = 0; i < sizeof unused; i++)
    assert_non_null(strstr(emu_desc_refuse(1ull << unused[i]), "outside its fields"));
}

/* Addresses written out by hand from the prototype's rules. */
static void descriptor_addresses(void **state) {
  (void)state;
  const uint32_t base = 0x2400 /* a multiple of 1024 */;
  /* K-major, 128 B: chunk c of row r at r * 128 + ((c ^ (r & 7)) << 4). A k16 step adds 32 bytes:
   * the chunks 2 s, 2 s + 1. */
  for (uint32_t s = 0; s < 4; s++)
    for (uint32_t r = 0; r < 256; r++)
      for (uint32_t k = 0; k < 16; k++) {
        struct emu_desc d = emu_desc_decode(descriptor(base + 32 * s, 16, 1024, 1));
        uint32_t c = (16 * s + k) / 8;
        assert_int_equal(emu_desc_address(&d, 2, false, r, k),
                         base + r * 128 + ((c ^ (r & 7)) << 4) + k % 8 * 2);
      }
  /* K-major, 64 B: r * 64 + ((c ^ ((r >> 1) & 3)) << 4). 32 B: one chunk bit by r >> 2. */
  for (uint32_t r = 0; r < 64; r++)
    for (uint32_t k = 0; k < 8; k++) {
      struct emu_desc d = emu_desc_decode(descriptor(base + 32, 16, 512, 2));
      uint32_t c = 2 + k / 4;
      assert_int_equal(emu_desc_address(&d, 4, false, r, k),
                       base + r * 64 + ((c ^ (r >> 1 & 3)) << 4) + k % 4 * 4);
      d = emu_desc_decode(descriptor(base, 16, 256, 3));
      assert_int_equal(emu_desc_address(&d, 4, false, r, k),
                       base + r * 32 + (((k / 4) ^ (r >> 2 & 1)) << 4) + k % 4 * 4);
    }
  /* K-major, none: 8 rows x 16 bytes lie together; lbo to the next along k, sbo to 8 rows on. */
  struct emu_desc d = emu_desc_decode(descriptor(base, 2048, 128, 0));
  assert_int_equal(emu_desc_address(&d, 1, false, 21, 17), base + 2 * 128 + 5 * 16 + 2048 + 1);
  /* MN-major, 128 B: panels of 64 columns x k rows x 128 B; sbo to 8 k rows on, lbo a panel. */
  d = emu_desc_decode(descriptor(base, 8192, 1024, 1));
  for (uint32_t n = 0; n < 256; n++)
    for (uint32_t k = 0; k < 16; k++)
      assert_int_equal(emu_desc_address(&d, 2, true, n, k),
                       base + n / 64 * 8192 + k * 128 + ((n % 64 / 8 ^ k % 8) << 4) + n % 8 * 2);
  /* MN-major, none: the two offsets change places. */
  d = emu_desc_decode(descriptor(base, 4096, 128, 0));
  assert_int_equal(emu_desc_address(&d, 2, true, 19, 11), base + 2 * 128 + 3 * 2 + 4096 + 3 * 16);
}

/* Whatever the mode, an operand's elements do not share bytes. */
static void descriptor_addresses_differ(void **state) {
  (void)state;
  static const uint32_t spans[] = {16, 128, 64, 32};
  static const uint32_t bytes[] = {1, 2, 4};
  static uint8_t seen[1 << 16];
  for (uint64_t mode = 0; mode < 4; mode++)
    for (unsigned b = 0; b < 3; b++)
      for (int mn_major = 0; mn_major < 2; mn_major++) {
        const uint32_t span = spans[mode], rows = 64, ks = 32 / bytes[b];
        uint32_t pattern = 8 * span, across = mn_major ? ks : rows;
        uint32_t lbo = pattern * ((across + 7) / 8), sbo = pattern;
        struct emu_desc d = emu_desc_decode(mn_major && !mode ? descriptor(1024, sbo, lbo, mode)
                                                              : descriptor(1024, lbo, sbo, mode));
        memset(seen, 0, sizeof seen);
        for (uint32_t r = 0; r < rows; r++)
          for (uint32_t k = 0; k < ks; k++) {
            uint32_t at = emu_desc_address(&d, bytes[b], mn_major, r, k);
            assert_true(at % bytes[b] == 0 && at >= 1024 && at < sizeof seen);
            for (uint32_t x = 0; x < bytes[b]; x++)
              assert_int_equal(seen[at + x]++, 0);
          }
      }
}

/* ---- tensor maps ---- */

/* One element of a box by the rules as they are told to people, element by element. */
static void element(const struct emu_tmap *t, uint32_t shared, const int32_t *coord,
                    const uint32_t *at, uint32_t *to, bool *inside, uint64_t *from) {
  uint32_t row = 0;
  *inside = true;
  *from = t->base;
  for (uint32_t d = t->rank; d-- > 0;) {
    int64_t c = (int64_t)coord[d] + at[d];
    if (c < 0 || c >= (int64_t)t->dim[d])
      *inside = false;
    *from += (uint64_t)(c * (d ? t->stride[d] : t->bytes));
    if (d)
      row = row * t->box[d] + at[d];
  }
  uint32_t byte = at[0] * t->bytes, chunk = byte / 16, pitch = t->box[0] * t->bytes;
  if (t->span == 128)
    chunk ^= row & 7;
  else if (t->span == 64)
    chunk ^= row >> 1 & 3;
  else if (t->span == 32)
    chunk ^= row >> 2 & 1;
  *to = shared + row * pitch + chunk * 16 + byte % 16;
}

static void boxes(void **state) {
  (void)state;
  static const uint32_t spans[] = {0, 32, 64, 128}, widths[] = {1, 2, 4, 8};
  static uint8_t seen[1 << 16];
  for (unsigned s = 0; s < 4; s++)
    for (unsigned w = 0; w < 4; w++)
      for (uint32_t rank = 1; rank <= 5; rank++)
        for (int corner = 0; corner < 3; corner++) {
          struct emu_tmap t = {.base = 0x7f0000000100, .rank = rank, .bytes = widths[w]};
          t.span = spans[s];
          int64_t stride = 0;
          int32_t coord[5];
          for (uint32_t d = 0; d < rank; d++) {
            t.box[d] = d ? (d == 1 ? 12 : 2) : (t.span ? t.span : 48) / t.bytes;
            t.dim[d] = d ? 19 : 150;
            stride = d == 0 ? 0 : d == 1 ? 160 * t.bytes : stride * 20;
            t.stride[d] = stride;
            coord[d] = corner == 0   ? (d ? 3 : 8)
                       : corner == 1 ? -(int32_t)(d ? 1 : 3)
                                     : (int32_t)t.dim[d] - (d == 1 ? 5 : 1);
          }
          assert_null(emu_tmap_refuse(&t));
          const uint32_t shared = 4096, total = emu_tmap_box_bytes(&t);
          assert_null(emu_tmap_refuse_shared(&t, shared));
          assert_int_equal(emu_tmap_shared_bytes(&t), total);
          memset(seen, 0, sizeof seen);
          uint32_t at[5] = {0};
          for (uint32_t n = 0; n < total / t.bytes; n++) {
            uint32_t to;
            bool inside;
            uint64_t from;
            element(&t, shared, coord, at, &to, &inside, &from);
            uint32_t byte = n * t.bytes;
            struct emu_piece p = emu_tmap_piece(&t, shared, coord, byte / 16);
            assert_int_equal(p.shared + byte % 16, to);
            assert_int_equal(byte % 16 >= p.first && byte % 16 + t.bytes <= p.last, inside);
            if (inside)
              assert_true(p.global + (byte % 16 - p.first) == from);
            assert_true(to + t.bytes - shared <= total);
            assert_int_equal(seen[to - shared]++, 0);
            for (uint32_t d = 0; d < rank && ++at[d] == t.box[d]; d++)
              at[d] = 0;
          }
        }
}

/* What TMA puts at (k, row) with a swizzle, wgmma reads there with the same swizzle: K-major and
 * MN-major, every type; so the two tables share one idea of a swizzle. */
static void tma_and_wgmma_agree(void **state) {
  (void)state;
  static const uint32_t spans[] = {128, 64, 32}, widths[] = {1, 2, 4};
  for (unsigned m = 0; m < 3; m++)
    for (unsigned w = 0; w < 3; w++) {
      const uint32_t span = spans[m], bytes = widths[w], ks = span / bytes, shared = 3 * 1024;
      struct emu_tmap t = {.rank = 2, .bytes = bytes, .dim = {ks, 64}, .box = {ks, 64}};
      t.span = span;
      t.stride[1] = span;
      const int32_t origin[2] = {0, 0};
      for (uint32_t row = 0; row < 64; row++)
        for (uint32_t k = 0; k < ks; k++) {
          uint32_t byte = row * span + k * bytes;
          struct emu_piece p = emu_tmap_piece(&t, shared, origin, byte / 16);
          assert_int_equal(p.global, byte / 16 * 16);
          uint32_t step = 32 / bytes; /* k of an instruction */
          struct emu_desc d =
              emu_desc_decode(descriptor(shared + k / step * 32, 16, 8 * span, (uint64_t)m + 1));
          assert_int_equal(p.shared + byte % 16, emu_desc_address(&d, bytes, false, row, k % step));
          if (bytes == 2) { /* the same box read as [k, mn] */
            d = emu_desc_decode(descriptor(shared, 64 * span, 8 * span, (uint64_t)m + 1));
            assert_int_equal(p.shared + byte % 16, emu_desc_address(&d, bytes, true, k, row));
          }
        }
    }
}

static void maps_that_are_refused(void **state) {
  (void)state;
  const struct emu_tmap good = {.base = 256,
                                .rank = 2,
                                .bytes = 2,
                                .dim = {1000, 1000},
                                .stride = {0, 2048},
                                .box = {64, 128},
                                .span = 128};
  assert_null(emu_tmap_refuse(&good));
#define REFUSED(change, says)                                                                      \
  do {                                                                                             \
    struct emu_tmap t = good;                                                                      \
    change;                                                                                        \
    assert_non_null(emu_tmap_refuse(&t));                                                          \
    assert_non_null(strstr(emu_tmap_refuse(&t), says));                                            \
  } while (0)
  REFUSED(t.rank = 0, "1 to 5 dims");
  REFUSED(t.rank = 6, "1 to 5 dims");
  REFUSED(t.bytes = 3, "1, 2, 4 or 8");
  REFUSED(t.span = 16, "0, 32, 64 or 128");
  REFUSED(t.base = 8, "address");
  REFUSED(t.dim[1] = 0, "dims");
  REFUSED(t.dim[0] = (1ull << 32) + 1, "dims");
  REFUSED(t.stride[1] = 2056, "strides");
  REFUSED(t.stride[1] = -2048, "strides");
  REFUSED(t.stride[1] = 1ll << 40, "strides");
  REFUSED(t.box[1] = 0, "box is 1 to 256");
  REFUSED(t.box[1] = 257, "box is 1 to 256");
  REFUSED(t.box[0] = 60, "multiple of 16 bytes");
  REFUSED(t.box[0] = 128, "at most the swizzle");
  REFUSED(t.box[0] = 32, "no dump");
#undef REFUSED
  assert_null(emu_tmap_refuse_coord(&good, (int32_t[]){-64, -1}, false));
  assert_null(emu_tmap_refuse_coord(&good, (int32_t[]){8, 3}, true));
  assert_non_null(strstr(emu_tmap_refuse_coord(&good, (int32_t[]){4, 0}, false), "16 bytes"));
  assert_non_null(strstr(emu_tmap_refuse_coord(&good, (int32_t[]){4, 0}, true), "16 bytes"));
  assert_non_null(strstr(emu_tmap_refuse_coord(&good, (int32_t[]){0, -1}, true), "negative"));
  assert_non_null(strstr(emu_tmap_refuse_coord(&good, (int32_t[]){-8, 0}, true), "negative"));
  assert_null(emu_tmap_refuse_shared(&good, 2048));
  assert_non_null(strstr(emu_tmap_refuse_shared(&good, 2048 + 64), "128 bytes"));
  assert_non_null(strstr(emu_tmap_refuse_shared(&good, 2048 + 128), "pattern"));
}

/* What an H200's wgmma gives (tests/data/sm90a/numbers.txt), and what cutting means. */
static void short_sums(void **state) {
  (void)state;
  static const struct {
    double acc, products[3], want;
  } rows[] = {
      {8192, {1, 0, 0}, 8193},         {16384, {1, 0, 0}, 16384},
      {16384, {3, 0, 0}, 16386},       {32768, {3, 0, 0}, 32768},
      {16384, {1, 1, 1}, 16384},       {-16384, {-3, 0, 0}, -16386},
      {-16384, {1, 0, 0}, -16384},     {0, {0, 0, 0}, 0},
      {1, {16384, -16384, 0}, 0},      {0, {16383, 1, 3}, 16386},
      {0x1p-100, {0, 0, 0}, 0x1p-100}, {0x1p14, {-0x1p14, 0.5, 0}, 0},
      {3, {0.25, 0.5, -0.125}, 3.625},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    double got = emu_short_sum(3, rows[i].products, rows[i].acc);
    if (got != rows[i].want)
      fail_msg("row %zu: %g, not %g", i, got, rows[i].want);
  }
  const double inf = 1.0 / 0.0, wild[2] = {inf, -inf}, one[2] = {inf, 1};
  double nan = emu_short_sum(2, wild, 0);
  assert_true(nan != nan);
  assert_true(emu_short_sum(2, one, 5) == inf);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(short_sums),
      cmocka_unit_test(mma_is_as_ptx_writes_it),
      cmocka_unit_test(mma_knows_what_there_is_not),
      cmocka_unit_test(ldmatrix_loads_operands),
      cmocka_unit_test(stmatrix_stores_an_accumulator),
      cmocka_unit_test(wgmma_fragments),
      cmocka_unit_test(wgmma_shapes),
      cmocka_unit_test(descriptor_bits),
      cmocka_unit_test(descriptor_addresses),
      cmocka_unit_test(descriptor_addresses_differ),
      cmocka_unit_test(boxes),
      cmocka_unit_test(tma_and_wgmma_agree),
      cmocka_unit_test(maps_that_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
