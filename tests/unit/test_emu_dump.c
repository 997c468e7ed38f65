/* The emulator's tables against what a GPU says: tests/data/sm90a/, written by the program of
 * tests/gpu/dump/. A file that is not there yet is a skipped test, with its reason. */
#include "codegen/emu_tables.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A dump under comparison. The first difference is kept in `wrong`. */
struct reader {
  const char *name;
  char *line, *next; /* of the text, cut at its newlines as it is read */
  uint32_t number;
  uint32_t blocks, facts; /* that were compared */
  char wrong[512];
};

static bool wrong(struct reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool wrong(struct reader *r, const char *format, ...) {
  if (r->wrong[0])
    return false;
  int n = snprintf(r->wrong, sizeof r->wrong, "%s:%u: ", r->name, r->number);
  va_list args;
  va_start(args, format);
  vsnprintf(r->wrong + n, sizeof r->wrong - (size_t)n, format, args);
  va_end(args);
  return false;
}

/* The next line that is no comment; false at the end. */
static bool next_line(struct reader *r) {
  do {
    if (!r->next || !*r->next)
      return false;
    r->line = r->next;
    r->number++;
    char *end = strchr(r->line, '\n');
    r->next = end ? end + 1 : NULL;
    if (end)
      *end = 0;
  } while (r->line[0] == '#' || !r->line[0]);
  return true;
}

static bool at_end(const struct reader *r) {
  return !strcmp(r->line, "end");
}

/* ---- matrix instructions ---- */

enum { NUMBERS = 1 << 15 };

struct matrices {
  uint32_t m, n, k, threads, per[3]; /* elements of A, B, D that a thread holds */
  enum dtype a, b, d;
  bool wgmma;
  int regs, trans[2];
  struct emu_desc desc;
  const struct emu_mma *mma;
  /* Numbers as the dump counts them, by place; and places by number (row << 16 | col; ~0: none). */
  uint32_t of_a[64 * 32], of_b[32 * 256], of_d[64 * 256];
  uint32_t a_at[NUMBERS], b_at[NUMBERS], d_at[NUMBERS];
  uint32_t lowest_of_row[64], lowest_of_col[256];
};

static void number(uint32_t *of, uint32_t *at, uint32_t cols, struct emu_place p, uint32_t x) {
  assert_true(x < NUMBERS);
  of[p.row * cols + p.col] = x;
  at[x] = p.row << 16 | p.col;
}

static void number_all(struct matrices *i) {
  memset(i->a_at, 0xff, sizeof i->a_at);
  memset(i->b_at, 0xff, sizeof i->b_at);
  memset(i->d_at, 0xff, sizeof i->d_at);
  memset(i->lowest_of_row, 0xff, sizeof i->lowest_of_row);
  memset(i->lowest_of_col, 0xff, sizeof i->lowest_of_col);
  const uint32_t bits = dtype_bits(i->a), bytes = bits / 8;
  for (uint32_t t = 0; t < i->threads; t++) {
    const uint32_t lane = t % 32, warp = t / 32;
    if (!i->wgmma || i->regs)
      for (uint32_t e = 0; e < i->m * i->k / i->threads; e++)
        number(i->of_a, i->a_at, i->k,
               i->wgmma ? emu_wgmma_a_place(bits, warp, lane, e)
                        : emu_mma_place(i->mma, EMU_A, lane, e),
               t * (i->m * i->k / i->threads) + e);
    if (!i->wgmma)
      for (uint32_t e = 0; e < i->k * i->n / 32; e++)
        number(i->of_b, i->b_at, i->n, emu_mma_place(i->mma, EMU_B, lane, e),
               t * (i->k * i->n / 32) + e);
    for (uint32_t e = 0; e < i->m * i->n / i->threads; e++) {
      struct emu_place p =
          i->wgmma ? emu_wgmma_d_place(warp, lane, e) : emu_mma_place(i->mma, EMU_D, lane, e);
      uint32_t x = t * (i->m * i->n / i->threads) + e;
      number(i->of_d, i->d_at, i->n, p, x);
      if (x < i->lowest_of_row[p.row])
        i->lowest_of_row[p.row] = x;
      if (x < i->lowest_of_col[p.col])
        i->lowest_of_col[p.col] = x;
    }
  }
  for (uint32_t k = 0; i->wgmma && k < i->k; k++) {
    for (uint32_t m = 0; !i->regs && m < i->m; m++)
      number(i->of_a, i->a_at, i->k, (struct emu_place){m, k},
             emu_desc_address(&i->desc, bytes, i->trans[0], m, k) / bytes);
    for (uint32_t n = 0; n < i->n; n++)
      number(i->of_b, i->b_at, i->n, (struct emu_place){k, n},
             emu_desc_address(&i->desc, bytes, i->trans[1], n, k) / bytes);
  }
}

static bool read_head(struct reader *r, struct matrices *i) {
  char a[16], b[16], d[16];
  int used = 0;
  unsigned mode, lbo, sbo, start, base;
  memset(i, 0, sizeof *i);
  if (sscanf(r->line, "begin %*s m=%u n=%u k=%u a=%15s b=%15s d=%15s%n", &i->m, &i->n, &i->k, a, b,
             d, &used) != 6 ||
      !dtype_find(a, &i->a) || !dtype_find(b, &i->b) || !dtype_find(d, &i->d))
    return wrong(r, "not the head of a block: %s", r->line);
  i->wgmma = r->line[used] != 0;
  i->threads = i->wgmma ? 128 : 32;
  if (!i->wgmma) {
    i->mma = emu_mma_find(i->m, i->n, i->k, i->a, i->b, i->d);
    return i->mma || wrong(r, "the tables have no such mma.sync: %s", r->line);
  }
  if (sscanf(r->line + used, " regs=%d trans=%d,%d mode=%u lbo=%u sbo=%u start=%u base=%u",
             &i->regs, &i->trans[0], &i->trans[1], &mode, &lbo, &sbo, &start, &base) != 8)
    return wrong(r, "not a wgmma: %s", r->line);
  uint64_t bits = (start >> 4) | (uint64_t)(lbo >> 4) << 16 | (uint64_t)(sbo >> 4) << 32 |
                  (uint64_t)base << 49 | (uint64_t)mode << 62;
  struct emu_wgmma w = {i->n, i->k, i->a, i->b, i->d, i->regs, i->trans[0], i->trans[1]};
  i->desc = emu_desc_decode(bits);
  const char *why = emu_wgmma_refuse(&w);
  if (!why)
    why = emu_desc_refuse(bits);
  return !why || wrong(r, "the tables refuse what the GPU did: %s", why);
}

/* Compares one triple of a reach (a, b) or meet (d) block. */
static bool triple(struct reader *r, const struct matrices *i, char letter, uint32_t x, uint32_t p,
                   uint32_t q) {
  const uint32_t *at = letter == 'a' ? i->a_at : letter == 'b' ? i->b_at : i->d_at;
  if (x >= NUMBERS || at[x] == UINT32_MAX)
    return wrong(r, "%c %x: the tables have no such element", letter, x);
  const uint32_t row = at[x] >> 16, col = at[x] & 0xffff;
  uint32_t want_p, want_q;
  if (letter == 'a') {
    want_p = i->lowest_of_row[row];
    want_q = i->of_b[col * i->n + (i->d_at[want_p] & 0xffff)];
  } else if (letter == 'b') {
    want_p = i->lowest_of_col[col];
    want_q = i->of_a[(i->d_at[want_p] >> 16) * i->k + row];
  } else {
    const uint32_t k = i->a_at[0] & 0xffff;
    want_p = i->of_a[row * i->k + k];
    want_q = i->of_b[k * i->n + col];
  }
  r->facts++;
  return (p == want_p && q == want_q) || wrong(r, "%c %x (%u, %u): GPU %x %x, tables %x %x", letter,
                                               x, row, col, p, q, want_p, want_q);
}

static bool matrices(struct reader *r) {
  static struct matrices i;
  if (!read_head(r, &i))
    return false;
  number_all(&i);
  uint32_t seen[3] = {0};
  const bool meet = !strncmp(r->line, "begin meet", 10);
  while (next_line(r) && !at_end(r)) {
    char letter;
    unsigned x, count, p, q;
    int dp, dq;
    if (sscanf(r->line, "%c %x %x %x %d %x %d", &letter, &x, &count, &p, &dp, &q, &dq) != 7 ||
        !strchr(meet ? "d" : "ab", letter))
      return wrong(r, "not a run: %s", r->line);
    for (uint32_t n = 0; n < count; n++)
      if (!triple(r, &i, letter, x + n, p + n * (uint32_t)dp, q + n * (uint32_t)dq))
        return false;
    seen[letter == 'a' ? 0 : letter == 'b' ? 1 : 2] += count;
  }
  if (meet ? seen[2] != i.m * i.n : seen[0] != i.m * i.k || seen[1] != i.k * i.n)
    return wrong(r, "the block has %u, %u, %u elements of A, B, D", seen[0], seen[1], seen[2]);
  return true;
}

/* ---- ldmatrix, stmatrix ---- */

static bool matrix_rows(struct reader *r) {
  unsigned num, trans;
  char what[8];
  if (sscanf(r->line, "begin %7s num=%u trans=%u", what, &num, &trans) != 3)
    return wrong(r, "not the head of a block: %s", r->line);
  const bool store = !strcmp(what, "store");
  uint32_t want[512], n = store ? 512 : 64 * num, i = 0;
  for (uint32_t x = 0; x < 512; x++)
    want[x] = 0xffff;
  for (uint32_t lane = 0; lane < 32; lane++)
    for (uint32_t reg = 0; reg < num; reg++)
      for (uint32_t e = 0; e < 2; e++) {
        struct emu_row row = emu_matrix_row(trans, lane, reg, e);
        uint32_t memory = (7 * row.from + 3) % 64 * 8 + row.byte / 2,
                 here = (lane * num + reg) * 2 + e;
        want[store ? memory : here] = store ? here : memory;
      }
  while (next_line(r) && !at_end(r))
    for (char *s = r->line, *after; i < n; s = after, i++) {
      uint32_t v = (uint32_t)strtoul(s, &after, 16);
      if (after == s)
        break;
      r->facts++;
      if (v != want[i])
        return wrong(r, "element %u: GPU %x, tables %x", i, v, want[i]);
    }
  return i == n || wrong(r, "%u elements instead of %u", i, n);
}

/* ---- tensor maps ---- */

enum { SHARED = 16384, TENSOR = 0xeeee };

static bool read_map(struct reader *r, struct emu_tmap *t, int32_t *coord, uint32_t *offset,
                     char *what) {
  int used = 0;
  *t = (struct emu_tmap){.base = 0};
  if (sscanf(r->line, "begin %7s bytes=%u rank=%u span=%u offset=%u dims%n", what, &t->bytes,
             &t->rank, &t->span, offset, &used) != 5 ||
      !used || t->rank > EMU_TMAP_RANK)
    return wrong(r, "not the head of a block: %s", r->line);
  const char *s = r->line + used;
  for (uint32_t d = 0; d < t->rank; d++) {
    unsigned dim, stride, box;
    if (sscanf(s, " %u,%u,%u,%d%n", &dim, &stride, &box, &coord[d], &used) != 4)
      return wrong(r, "dims are missing: %s", r->line);
    t->dim[d] = dim;
    t->stride[d] = stride;
    t->box[d] = box;
    s += used;
  }
  unsigned expect, done;
  if (!strcmp(what, "load") && (sscanf(s, " expect=%u done=%u", &expect, &done) != 2 || !done ||
                                expect != emu_tmap_box_bytes(t)))
    return wrong(r, "the box did not come with %u bytes counted: %s", emu_tmap_box_bytes(t), s);
  const char *why = emu_tmap_refuse(t);
  if (!why)
    why = emu_tmap_refuse_coord(t, coord, strcmp(what, "load") != 0);
  return !why || wrong(r, "the tables refuse what the GPU did: %s", why);
}

static bool boxes(struct reader *r) {
  static uint32_t memory[SHARED], tensor[TENSOR];
  const uint32_t nothing = UINT32_MAX;
  struct emu_tmap t;
  int32_t coord[EMU_TMAP_RANK];
  uint32_t offset;
  char what[8];
  if (!read_map(r, &t, coord, &offset, what))
    return false;
  memset(memory, 0xff, sizeof memory);
  memset(tensor, 0xff, sizeof tensor);
  uint32_t moved = 0;
  for (uint32_t i = 0; i < emu_tmap_box_bytes(&t) / 16; i++) {
    struct emu_piece p = emu_tmap_piece(&t, offset, coord, i);
    for (uint32_t b = 0; b < 16; b += t.bytes) {
      bool inside = b >= p.first && b < p.last;
      uint64_t from = inside ? (p.global + (b - p.first)) / t.bytes : 0;
      assert_true(from < TENSOR && (p.shared + b) / t.bytes < SHARED);
      memory[(p.shared + b) / t.bytes] = inside ? (uint32_t)from + 1 : 0;
      if (b >= p.first && b < p.stored) {
        from = (p.global + (b - p.first)) / t.bytes;
        tensor[from] = (p.shared + b) / t.bytes + 1;
        moved++;
      }
    }
  }
  if (strcmp(what, "load")) {
    uint32_t seen = 0;
    while (next_line(r) && !at_end(r)) {
      unsigned i, v;
      if (sscanf(r->line, "%x %x", &i, &v) != 2 || i >= TENSOR)
        return wrong(r, "not an element: %s", r->line);
      r->facts++;
      seen++;
      if (v != tensor[i])
        return wrong(r, "element %x of the tensor: GPU %x, tables %x", i, v, tensor[i]);
    }
    return seen == moved || wrong(r, "GPU stored %u elements, tables %u", seen, moved);
  }
  uint32_t i = 0;
  while (next_line(r) && !at_end(r))
    for (char *s = r->line, *after; i < SHARED; s = after, i++) {
      while (*s == ' ')
        s++;
      uint32_t v = nothing;
      if (*s == '-')
        after = s + 1;
      else
        v = (uint32_t)strtoul(s, &after, 16);
      if (after == s)
        break;
      r->facts++;
      if (v != memory[i])
        return wrong(r, "element %u of shared memory: GPU %x, tables %x", i, v, memory[i]);
    }
  for (; i < SHARED; i++)
    if (memory[i] != nothing)
      return wrong(r, "element %u of shared memory: GPU none, tables %x", i, memory[i]);
  return true;
}

/* ---- numbers ---- */

/* The claims of emu_tables.h: sums of integers are exact below 2^24 (8-bit floats: 2^13), and tf32
 * operands are cut. */
static bool numbers(struct reader *r) {
  char unit[8], a[16];
  enum dtype type;
  const bool product = !strncmp(r->line, "begin product", 13);
  if (sscanf(r->line, "begin %*s %7s m=%*u n=%*u k=%*u a=%15s", unit, a) != 2 ||
      !dtype_find(a, &type))
    return wrong(r, "not the head of a block: %s", r->line);
  /* C is below 2^(e + 1), the products' sum below 2^11. */
  const unsigned exact = dtype_is_int(type) ? 26 : dtype_bits(type) == 8 ? 11 : 22;
  unsigned seen = 0;
  while (next_line(r) && !at_end(r)) {
    unsigned e, bad;
    r->facts++;
    seen++;
    if (product) {
      if (!strstr(r->line, "cut to 10 bits"))
        return wrong(r, "%s: %s", unit, r->line);
    } else if (sscanf(r->line, "2^%u: %u wrong", &e, &bad) != 2) {
      return wrong(r, "not a count: %s", r->line);
    } else if (bad && e <= exact) {
      return wrong(r, "%s %s: %u sums of integers from 2^%u on are not exact", unit, a, bad, e);
    }
  }
  return seen == (product ? 1 : 27) || wrong(r, "%u lines", seen);
}

/* What maps of floats make of the words they load. */
static bool rounding(struct reader *r) {
  char as[8];
  unsigned expect, done, seen = 0;
  if (sscanf(r->line, "begin round as=%7s expect=%u done=%u", as, &expect, &done) != 3)
    return wrong(r, "not the head of a block: %s", r->line);
  bool tf32 = !strcmp(as, "tf32");
  if (!done || (!tf32 && strcmp(as, "f32")))
    return wrong(r, "the box did not come: %s", r->line);
  while (next_line(r) && !at_end(r)) {
    unsigned in, out;
    if (sscanf(r->line, "%x %x", &in, &out) != 2)
      return wrong(r, "not a word: %s", r->line);
    r->facts++;
    seen++;
    uint32_t table = tf32 ? emu_tmap_tf32(in) : in;
    if (out != table)
      return wrong(r, "%08x as %s: GPU %08x, tables %08x", in, as, out, table);
  }
  return 4 * seen == expect || wrong(r, "%u words", seen);
}

/* ---- the tests ---- */

typedef bool (*block_fn)(struct reader *r);

/* Compares all blocks of a text (which is cut up). */
static bool compare(struct reader *r, const char *name, char *text, block_fn block) {
  *r = (struct reader){.name = name, .next = text};
  while (next_line(r)) {
    if (strncmp(r->line, "begin ", 6))
      return wrong(r, "not the head of a block: %s", r->line);
    if (!block(r))
      return false;
    if (!at_end(r))
      return wrong(r, "the block has no end");
    r->blocks++;
  }
  return r->blocks > 0 || wrong(r, "no block");
}

static void file(const char *name, uint32_t blocks, block_fn block) {
  char path[512];
  snprintf(path, sizeof path, "%s/tests/data/sm90a/%s", KILN_SRC_DIR, name);
  FILE *in = fopen(path, "rb");
  if (!in) {
    printf("SKIP: no index dump tests/data/sm90a/%s yet (tests/gpu/run dump, on an H100 or H200)\n",
           name);
    skip();
  }
  fseek(in, 0, SEEK_END);
  long size = ftell(in);
  rewind(in);
  char *text = malloc((size_t)size + 1);
  assert_non_null(text);
  assert_int_equal(fread(text, 1, (size_t)size, in), size);
  fclose(in);
  text[size] = 0;
  struct reader r;
  bool same = compare(&r, name, text, block);
  free(text);
  if (!same)
    fail_msg("%s", r.wrong);
  printf("%s: %u blocks, %u facts\n", name, r.blocks, r.facts);
  assert_int_equal(r.blocks, blocks);
}

static void mma_file(void **state) {
  (void)state;
  file("mma.txt", 30, matrices);
}

static void wgmma_file(void **state) {
  (void)state;
  file("wgmma.txt", 49, matrices);
}

static void matrix_file(void **state) {
  (void)state;
  file("matrix.txt", 12, matrix_rows);
}

static void tma_file(void **state) {
  (void)state;
  file("tma.txt", 32, boxes);
}

static void rounding_file(void **state) {
  (void)state;
  file("rounding.txt", 2, rounding);
}

static void numbers_file(void **state) {
  (void)state;
  file("numbers.txt", 16, numbers);
}

/* Written by hand after PTX's figures: what a dump would say; then with one number changed. */
static const struct {
  block_fn block;
  const char *text, *from, *to, *says;
} samples[] = {
    /* f64 m8n8k4: A's lane l is row l / 4, k l % 4; D's pair 2 l is row l / 4. The lowest of
     * row g is 8 g, column 0, where B's lane k is met. */
    {matrices,
     "# a comment\n"
     "begin reach m=8 n=8 k=4 a=f64 b=f64 d=f64\n"
     "a 0 4 0 0 0 1\na 4 4 8 0 0 1\na 8 4 10 0 0 1\na c 4 18 0 0 1\n"
     "a 10 4 20 0 0 1\na 14 4 28 0 0 1\na 18 4 30 0 0 1\na 1c 4 38 0 0 1\n"
     "b 0 4 0 0 0 1\nb 4 4 1 0 0 1\nb 8 4 2 0 0 1\nb c 4 3 0 0 1\n"
     "b 10 4 4 0 0 1\nb 14 4 5 0 0 1\nb 18 4 6 0 0 1\nb 1c 4 7 0 0 1\nend\n",
     "b c 4 3 0 0 1", "b c 4 2 0 0 1", "b c (0, 3): GPU 2 0, tables 3 0"},
    {matrices,
     "begin meet m=8 n=8 k=4 a=f64 b=f64 d=f64\n"
     "d 0 8 0 0 0 4\nd 8 8 4 0 0 4\nd 10 8 8 0 0 4\nd 18 8 c 0 0 4\n"
     "d 20 8 10 0 0 4\nd 28 8 14 0 0 4\nd 30 8 18 0 0 4\nd 38 8 1c 0 0 4\nend\n",
     "d 28 8 14 0 0 4", "d 28 7 14 0 0 4", "has 0, 0, 63 elements"},
    /* ldmatrix.x1: lane l holds elements 2 (l % 4) + e of row l / 4, which is row 7 (l / 4) + 3. */
    {matrix_rows,
     "begin load num=1 trans=0\n"
     "18 19 1a 1b 1c 1d 1e 1f 50 51 52 53 54 55 56 57\n"
     "88 89 8a 8b 8c 8d 8e 8f c0 c1 c2 c3 c4 c5 c6 c7\n"
     "f8 f9 fa fb fc fd fe ff 130 131 132 133 134 135 136 137\n"
     "168 169 16a 16b 16c 16d 16e 16f 1a0 1a1 1a2 1a3 1a4 1a5 1a6 1a7\nend\n",
     "8a 8b", "8b 8a", "element 18: GPU 8b, tables 8a"},
    /* A box of 16 x 5 u16 with a 32-byte swizzle, two columns and one row outside: row 4's chunks
     * change places. */
    {boxes,
     "begin load bytes=2 rank=2 span=32 offset=0 dims 14,48,16,0 4,96,5,0 expect=160 done=1\n"
     "1 2 3 4 5 6 7 8 9 a b c d e 0 0\n31 32 33 34 35 36 37 38 39 3a 3b 3c 3d 3e 0 0\n"
     "61 62 63 64 65 66 67 68 69 6a 6b 6c 6d 6e 0 0\n"
     "91 92 93 94 95 96 97 98 99 9a 9b 9c 9d 9e 0 0\n0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\nend\n",
     "99 9a", "9a 99", "element 56 of shared memory: GPU 9a, tables 99"},
    {boxes,
     "begin store bytes=4 rank=2 span=32 offset=0 dims 9,64,8,4 6,64,5,1\n"
     "14 1\n15 2\n16 3\n17 4\n18 5\n19 6\n1a 7\n1b 8\n"
     "24 9\n25 a\n26 b\n27 c\n28 d\n29 e\n2a f\n2b 10\n"
     "34 11\n35 12\n36 13\n37 14\n38 15\n39 16\n3a 17\n3b 18\n"
     "44 19\n45 1a\n46 1b\n47 1c\n48 1d\n49 1e\n4a 1f\n4b 20\n"
     "54 25\n55 26\n56 27\n57 28\n58 21\n59 22\n5a 23\n5b 24\n"
     "end\n",
     "56 27\n", "", "GPU stored 39 elements, tables 40"},
    {numbers,
     "begin product mma m=16 n=8 k=8 a=f32 b=f32 d=f32\n3f801800 squared: cut to 10 bits\nend\n",
     "cut", "rounded", "rounded to 10 bits"},
    /* Ties to even, down and up; a carry into the exponent; what is no tie; an infinity. */
    {rounding,
     "begin round as=tf32 expect=20 done=1\n3f801000 3f800000\n3f803000 3f804000\n"
     "bffff000 c0000000\n3f801001 3f802000\n7f800000 7f800000\nend\n",
     "3f801000 3f800000", "3f801000 3f802000", "GPU 3f802000, tables 3f800000"},
    {rounding, "begin round as=f32 expect=4 done=1\n00001001 00001001\nend\n", "00001001\n",
     "00002000\n", "as f32: GPU 00002000, tables 00001001"},
};

static void a_comparison_can_fail(void **state) {
  (void)state;
  for (unsigned i = 0; i < sizeof samples / sizeof *samples; i++) {
    char text[2048];
    struct reader r;
    snprintf(text, sizeof text, "%s", samples[i].text);
    if (!compare(&r, "sample", text, samples[i].block))
      fail_msg("%u: %s", i, r.wrong);
    assert_true(r.facts > 0);
    const char *at = strstr(samples[i].text, samples[i].from);
    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - samples[i].text), samples[i].text,
             samples[i].to, at + strlen(samples[i].from));
    assert_false(compare(&r, "sample", text, samples[i].block));
    if (!strstr(r.wrong, samples[i].says))
      fail_msg("%u: '%s' does not say '%s'", i, r.wrong, samples[i].says);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_comparison_can_fail),
      cmocka_unit_test(mma_file),
      cmocka_unit_test(wgmma_file),
      cmocka_unit_test(matrix_file),
      cmocka_unit_test(tma_file),
      cmocka_unit_test(rounding_file),
      cmocka_unit_test(numbers_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
