/* Text form of launch recipes; see recipe.h. One fact a line, in a fixed order:
 *
 *   kiln-recipe 1
 *   kernel "gemm"
 *   target "sm_90a"
 *   arg in "A" bf16 [M, K]           in, out, inout; `optional` before the name
 *   arg scalar "alpha" f32
 *   check K % 8 == 0 : "K must be a multiple of 8"
 *   workspace 4 * M
 *   memset 0, 4 * M                  offset, bytes
 *   launch "gemm_kernel"
 *     grid cdiv(M, 128), cdiv(N, 128), 1
 *     block 128, 1, 1
 *     cluster 1, 1, 1
 *     smem 65536
 *     regs 0
 *     pdl                            only where set
 *     param ptr 0                    argument index
 *     param workspace 0              offset
 *     param i32 M
 *     param i64 A.stride0
 *     param scalar 3                 argument index
 *     param tmap 0 [K, M] strides [2, 2 * A.stride0] box [64, 128] swizzle 128 l2 256 fill zero
 *                                    then "round tf32" where set
 *   end
 */
#include "base/recipe.h"

#include "base/check.h"

#include <inttypes.h>

struct recipe *recipe_new(struct arena *a, struct symtab *syms) {
  struct recipe *r = ARENA_NEW(a, struct recipe);
  r->arena = a;
  expr_pool_init(&r->exprs, a, syms);
  r->kernel = r->target = "";
  return r;
}

static const char *const arg_kinds[] = {"in", "out", "inout", "scalar"};
static const char *const param_kinds[] = {"ptr", "workspace", "i32", "i64", "scalar", "tmap"};

/* Parameters that name an argument. */
static bool of_arg(enum recipe_param_kind k) {
  return k == RECIPE_PARAM_PTR || k == RECIPE_PARAM_SCALAR || k == RECIPE_PARAM_TMAP;
}

/* ---- printer ---- */

static void put_name(struct strbuf *out, const char *s) {
  sb_put_json(out, s, strlen(s));
}

static void print_arg(const struct recipe *r, const struct recipe_arg *a, struct strbuf *out) {
  sb_printf(out, "arg %s ", arg_kinds[a->kind]);
  if (a->optional)
    sb_puts(out, "optional ");
  put_name(out, a->name);
  sb_printf(out, " %s", dtype_name(a->dtype));
  if (a->kind != RECIPE_SCALAR) {
    sb_puts(out, " [");
    for (uint32_t i = 0; i < a->rank; i++) {
      if (i)
        sb_puts(out, ", ");
      expr_print(&r->exprs, a->dim[i], out);
    }
    sb_putc(out, ']');
  }
  sb_putc(out, '\n');
}

static void print_three(const char *key, const uint32_t v[3], struct strbuf *out) {
  sb_printf(out, "  %s %u, %u, %u\n", key, v[0], v[1], v[2]);
}

static void print_exprs(const struct recipe *r, const char *before, uint32_t n,
                        const struct expr *e, struct strbuf *out) {
  for (uint32_t i = 0; i < n; i++) {
    sb_puts(out, i ? ", " : before);
    expr_print(&r->exprs, e[i], out);
  }
  sb_putc(out, ']');
}

static void print_tmap(const struct recipe *r, const struct recipe_tmap *t, struct strbuf *out) {
  print_exprs(r, " [", t->rank, t->dim, out);
  print_exprs(r, " strides [", t->rank, t->stride, out);
  for (uint32_t i = 0; i < t->rank; i++)
    sb_printf(out, i ? ", %u" : " box [%u", t->box[i]);
  sb_printf(out, "] swizzle %u l2 %u fill %s%s", t->swizzle, t->l2, t->fill_nan ? "nan" : "zero",
            t->tf32 ? " round tf32" : "");
}

static void print_kernel(const struct recipe *r, const struct recipe_step *s, struct strbuf *out) {
  sb_puts(out, "launch ");
  put_name(out, s->entry);
  sb_puts(out, "\n  grid ");
  for (int i = 0; i < 3; i++) {
    if (i)
      sb_puts(out, ", ");
    expr_print(&r->exprs, s->grid[i], out);
  }
  sb_putc(out, '\n');
  print_three("block", s->block, out);
  print_three("cluster", s->cluster, out);
  sb_printf(out, "  smem %u\n  regs %u\n%s", s->smem_bytes, s->max_regs, s->pdl ? "  pdl\n" : "");
  for (uint32_t i = 0; i < s->params.n; i++) {
    const struct recipe_param *p = &s->params.at[i];
    sb_printf(out, "  param %s ", param_kinds[p->kind]);
    if (of_arg(p->kind))
      sb_printf(out, "%u", p->arg);
    else
      expr_print(&r->exprs, p->value, out);
    if (p->kind == RECIPE_PARAM_TMAP)
      print_tmap(r, p->tmap, out);
    sb_putc(out, '\n');
  }
  sb_puts(out, "end\n");
}

void recipe_print(const struct recipe *r, struct strbuf *out) {
  sb_printf(out, "kiln-recipe %d\nkernel ", RECIPE_VERSION);
  put_name(out, r->kernel);
  sb_puts(out, "\ntarget ");
  put_name(out, r->target);
  sb_putc(out, '\n');
  for (uint32_t i = 0; i < r->args.n; i++)
    print_arg(r, &r->args.at[i], out);
  for (uint32_t i = 0; i < r->checks.n; i++) {
    sb_puts(out, "check ");
    expr_print(&r->exprs, r->checks.at[i].cond, out);
    sb_puts(out, " : ");
    put_name(out, r->checks.at[i].message);
    sb_putc(out, '\n');
  }
  if (r->workspace_bytes.id) {
    sb_puts(out, "workspace ");
    expr_print(&r->exprs, r->workspace_bytes, out);
    sb_putc(out, '\n');
  }
  for (uint32_t i = 0; i < r->steps.n; i++) {
    const struct recipe_step *s = &r->steps.at[i];
    if (s->kind == RECIPE_KERNEL) {
      print_kernel(r, s, out);
      continue;
    }
    sb_puts(out, "memset ");
    expr_print(&r->exprs, s->offset, out);
    sb_puts(out, ", ");
    expr_print(&r->exprs, s->bytes, out);
    sb_putc(out, '\n');
  }
}

/* ---- parser ---- */

struct reader {
  struct recipe *r;
  struct diag_sink *diags;
  uint32_t file, line;
  const char *next, *end;       /* the rest of the text */
  const char *start, *at, *eol; /* the current line */
  bool failed;
};

/* Always false, so that callers can return it. */
__attribute__((format(printf, 3, 4))) static bool fail(struct reader *s, const char *at,
                                                       const char *fmt, ...) {
  if (!s->failed) {
    struct diag_loc loc = {s->file, s->line, (uint32_t)(at - s->start) + 1};
    va_list ap;
    va_start(ap, fmt);
    diag_vreport(s->diags, DIAG_ERROR, DIAG_RECIPE_SYNTAX, loc, fmt, ap);
    va_end(ap);
  }
  s->failed = true;
  return false;
}

/* Moves to the next line; false at the end of the text. */
static bool next_line(struct reader *s) {
  if (s->next >= s->end)
    return false;
  s->start = s->at = s->next;
  const char *nl = memchr(s->next, '\n', (size_t)(s->end - s->next));
  s->eol = nl ? nl : s->end;
  s->next = nl ? nl + 1 : s->end;
  s->line++;
  return true;
}

static void skip_space(struct reader *s) {
  while (s->at < s->eol && *s->at == ' ')
    s->at++;
}

/* The word at the cursor is `word`: takes it. */
static bool take_word(struct reader *s, const char *word) {
  skip_space(s);
  size_t n = strlen(word);
  if ((size_t)(s->eol - s->at) < n || memcmp(s->at, word, n) != 0 ||
      (s->at + n < s->eol && s->at[n] != ' '))
    return false;
  s->at += n;
  return true;
}

static bool take_sign(struct reader *s, char c) {
  skip_space(s);
  if (s->at == s->eol || *s->at != c)
    return false;
  s->at++;
  return true;
}

/* One of n words; -1 if none. */
static int take_one_of(struct reader *s, const char *const *words, int n) {
  for (int i = 0; i < n; i++)
    if (take_word(s, words[i]))
      return i;
  return -1;
}

static bool end_of_line(struct reader *s) {
  skip_space(s);
  return s->at == s->eol || fail(s, s->at, "expected the end of the line");
}

static int hex_value(char c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_escape(struct reader *s, struct strbuf *b) {
  char c = s->at < s->eol ? *s->at++ : 0;
  if (c == '"' || c == '\\') {
    sb_putc(b, c);
    return true;
  }
  if (c == 'n') {
    sb_putc(b, '\n');
    return true;
  }
  /* \u00xx, for the control characters that the printer escapes. */
  if (c == 'u' && s->eol - s->at >= 4 && s->at[0] == '0' && s->at[1] == '0') {
    int hi = hex_value(s->at[2]), lo = hex_value(s->at[3]), v = hi * 16 + lo;
    if (hi >= 0 && lo >= 0 && v > 0 && v < 0x80) {
      sb_putc(b, (char)v);
      s->at += 4;
      return true;
    }
  }
  return fail(s, s->at - 1, "unknown escape in a quoted text");
}

static bool read_name(struct reader *s, const char **out) {
  skip_space(s);
  const char *open = s->at;
  if (!take_sign(s, '"'))
    return fail(s, s->at, "expected a quoted text");
  struct strbuf b = {.arena = s->r->arena};
  while (s->at < s->eol && *s->at != '"') {
    char c = *s->at++;
    if (c == '\\') {
      if (!read_escape(s, &b))
        return false;
    } else if ((unsigned char)c < 0x20) {
      return fail(s, s->at - 1, "control character in a quoted text");
    } else {
      sb_putc(&b, c);
    }
  }
  if (!take_sign(s, '"'))
    return fail(s, open, "quoted text does not end on its line");
  *out = sb_str(&b);
  return true;
}

/* An expression up to `stop` (outside parentheses) or the end of the line. */
static bool read_expr(struct reader *s, char stop, struct expr *out) {
  skip_space(s);
  const char *end = s->at;
  for (int depth = 0; end < s->eol && (depth || *end != stop); end++)
    depth += *end == '(' ? 1 : *end == ')' ? -1 : 0;
  const char *error, *at;
  *out = expr_parse(&s->r->exprs, s->at, end, &error, &at);
  if (!out->id)
    return fail(s, at, "%s", error);
  s->at = end;
  return true;
}

static bool expect_sign(struct reader *s, char c) {
  return take_sign(s, c) || fail(s, s->at, "expected `%c`", c);
}

static bool read_u32(struct reader *s, uint32_t most, uint32_t *out) {
  skip_space(s);
  const char *first = s->at;
  uint64_t v = 0;
  while (s->at < s->eol && *s->at >= '0' && *s->at <= '9' && v <= UINT32_MAX)
    v = v * 10 + (uint64_t)(*s->at++ - '0');
  if (s->at == first)
    return fail(s, s->at, "expected a number");
  if (v > most)
    return fail(s, first, "%" PRIu64 " is over the limit of %u", v, most);
  *out = (uint32_t)v;
  return true;
}

/* `[M, K]`; *n: how many */
static bool read_exprs(struct reader *s, struct expr out[RECIPE_MAX_RANK], uint32_t *n) {
  *n = 0;
  if (!expect_sign(s, '['))
    return false;
  if (take_sign(s, ']'))
    return true;
  const char *close = memchr(s->at, ']', (size_t)(s->eol - s->at));
  if (!close)
    return fail(s, s->eol, "expected `]`");
  const char *eol = s->eol;
  s->eol = close; /* the last expression ends at the bracket */
  do {
    skip_space(s);
    if (*n == RECIPE_MAX_RANK)
      return fail(s, s->at, "more than %d dims", RECIPE_MAX_RANK);
    if (!read_expr(s, ',', &out[(*n)++]))
      return false;
  } while (take_sign(s, ','));
  s->eol = eol;
  return expect_sign(s, ']');
}

static bool expect_word(struct reader *s, const char *word) {
  return take_word(s, word) || fail(s, s->at, "expected `%s`", word);
}

/* `word` and one of these numbers. */
static bool read_choice(struct reader *s, const char *word, const uint32_t choices[4],
                        uint32_t *out) {
  if (!expect_word(s, word))
    return false;
  skip_space(s);
  const char *at = s->at;
  if (!read_u32(s, UINT32_MAX, out))
    return false;
  for (int i = 0; i < 4; i++)
    if (choices[i] == *out)
      return true;
  return fail(s, at, "`%s` is %u; it must be %u, %u, %u or %u", word, *out, choices[0], choices[1],
              choices[2], choices[3]);
}

/* What follows the argument of a tensor map. */
static bool read_tmap(struct reader *s, const struct recipe_arg *a, struct recipe_tmap *t) {
  static const uint32_t swizzles[] = {0, 32, 64, 128}, l2s[] = {0, 64, 128, 256};
  uint32_t n;
  const char *at = s->at;
  if (!read_exprs(s, t->dim, &t->rank))
    return false;
  if (t->rank != a->rank || t->rank == 0)
    return fail(s, at, "a tensor map of %u dims over argument `%s` of %u", t->rank, a->name,
                a->rank);
  if (dtype_bits(a->dtype) < 8)
    return fail(s, at, "a tensor map over %s: elements are whole bytes", dtype_name(a->dtype));
  if (!expect_word(s, "strides"))
    return false;
  at = s->at;
  if (!read_exprs(s, t->stride, &n))
    return false;
  if (n != t->rank)
    return fail(s, at, "%u strides for %u dims", n, t->rank);
  if (!expect_word(s, "box") || !expect_sign(s, '['))
    return false;
  for (uint32_t i = 0; i < t->rank; i++) {
    if (i && !expect_sign(s, ','))
      return false;
    skip_space(s);
    at = s->at;
    if (!read_u32(s, 256, &t->box[i]))
      return false;
    if (t->box[i] == 0)
      return fail(s, at, "a box of 0 elements");
  }
  if (!expect_sign(s, ']') || !read_choice(s, "swizzle", swizzles, &t->swizzle))
    return false;
  uint32_t inner = t->box[0] * (dtype_bits(a->dtype) / 8);
  if (inner % 16 || (t->swizzle && inner > t->swizzle))
    return fail(s, at, "a box whose rows have %u bytes: it must be a multiple of 16%s", inner,
                t->swizzle ? ", and not above the swizzle" : "");
  if (!read_choice(s, "l2", l2s, &t->l2) || !expect_word(s, "fill"))
    return false;
  t->fill_nan = take_word(s, "nan");
  if (t->fill_nan && (!dtype_is_float(a->dtype) || dtype_bits(a->dtype) < 16))
    return fail(s, s->at, "fill nan over %s", dtype_name(a->dtype));
  if (!t->fill_nan && !expect_word(s, "zero"))
    return false;
  t->tf32 = take_word(s, "round");
  if (t->tf32 && a->dtype != DT_F32)
    return fail(s, s->at, "round tf32 over %s", dtype_name(a->dtype));
  return !t->tf32 || expect_word(s, "tf32");
}

static bool read_arg(struct reader *s) {
  struct recipe_arg a = {0};
  int kind = take_one_of(s, arg_kinds, 4);
  if (kind < 0)
    return fail(s, s->at, "expected in, out, inout or scalar");
  a.kind = (enum recipe_arg_kind)kind;
  a.optional = take_word(s, "optional");
  skip_space(s);
  const char *name_at = s->at;
  if (!read_name(s, &a.name))
    return false;
  for (uint32_t i = 0; i < s->r->args.n; i++)
    if (str_eq(s->r->args.at[i].name, a.name))
      return fail(s, name_at, "argument `%s` is there twice", a.name);
  bool found = false;
  for (int t = 0; t < DT_COUNT && !found; t++)
    if (t != DT_INDEX && take_word(s, dtype_name((enum dtype)t))) {
      a.dtype = (enum dtype)t;
      found = true;
    }
  if (!found)
    return fail(s, s->at, "expected the dtype of `%s`", a.name);
  if (a.kind != RECIPE_SCALAR && !read_exprs(s, a.dim, &a.rank))
    return false;
  VEC_PUSH(s->r->arena, &s->r->args, a);
  return end_of_line(s);
}

/* Expressions hold no colon, so the first one ends the condition. */
static bool read_check(struct reader *s) {
  struct recipe_check c;
  if (!read_expr(s, ':', &c.cond) || !expect_sign(s, ':') || !read_name(s, &c.message))
    return false;
  VEC_PUSH(s->r->arena, &s->r->checks, c);
  return end_of_line(s);
}

static bool read_three(struct reader *s, const char *key, uint32_t most, uint32_t out[3]) {
  if (!next_line(s) || !take_word(s, key))
    return fail(s, s->at, "expected `%s`", key);
  for (int i = 0; i < 3; i++) {
    if (i && !expect_sign(s, ','))
      return false;
    skip_space(s);
    const char *at = s->at;
    if (!read_u32(s, most, &out[i]))
      return false;
    if (out[i] == 0)
      return fail(s, at, "`%s` is 0", key);
  }
  if ((uint64_t)out[0] * out[1] * out[2] > most)
    return fail(s, s->start, "`%s` is over the limit of %u", key, most);
  return end_of_line(s);
}

static bool read_param(struct reader *s, struct recipe_step *step) {
  struct recipe_param p = {0};
  int kind = take_one_of(s, param_kinds, 6);
  if (kind < 0)
    return fail(s, s->at, "expected ptr, workspace, i32, i64, scalar or tmap");
  p.kind = (enum recipe_param_kind)kind;
  if (of_arg(p.kind)) {
    skip_space(s);
    const char *at = s->at;
    if (!read_u32(s, UINT32_MAX, &p.arg))
      return false;
    if (p.arg >= s->r->args.n)
      return fail(s, at, "there is no argument %u", p.arg);
    if ((s->r->args.at[p.arg].kind == RECIPE_SCALAR) != (p.kind == RECIPE_PARAM_SCALAR))
      return fail(s, at, "argument `%s` is %s scalar", s->r->args.at[p.arg].name,
                  p.kind == RECIPE_PARAM_SCALAR ? "not a" : "a");
    if (p.kind == RECIPE_PARAM_TMAP) {
      struct recipe_tmap *t = ARENA_NEW(s->r->arena, struct recipe_tmap);
      if (!read_tmap(s, &s->r->args.at[p.arg], t))
        return false;
      p.tmap = t;
    }
  } else if (!read_expr(s, '\n', &p.value)) {
    return false;
  }
  VEC_PUSH(s->r->arena, &step->params, p);
  return end_of_line(s);
}

static bool read_launch(struct reader *s) {
  struct recipe_step step = {.kind = RECIPE_KERNEL};
  if (!read_name(s, &step.entry) || !end_of_line(s))
    return false;
  if (!next_line(s) || !take_word(s, "grid"))
    return fail(s, s->at, "expected `grid`");
  for (int i = 0; i < 3; i++)
    if ((i && !expect_sign(s, ',')) || !read_expr(s, ',', &step.grid[i]))
      return false;
  if (!end_of_line(s) || !read_three(s, "block", 1024, step.block) ||
      !read_three(s, "cluster", 16, step.cluster))
    return false;
  if (!next_line(s) || !take_word(s, "smem"))
    return fail(s, s->at, "expected `smem`");
  if (!read_u32(s, 1u << 24, &step.smem_bytes) || !end_of_line(s))
    return false;
  if (!next_line(s) || !take_word(s, "regs"))
    return fail(s, s->at, "expected `regs`");
  if (!read_u32(s, 255, &step.max_regs) || !end_of_line(s))
    return false;
  while (next_line(s)) {
    if (take_word(s, "end")) {
      VEC_PUSH(s->r->arena, &s->r->steps, step);
      return end_of_line(s);
    }
    if (!step.pdl && !step.params.n && take_word(s, "pdl")) {
      step.pdl = true;
      if (!end_of_line(s))
        return false;
      continue;
    }
    if (!take_word(s, "param"))
      return fail(s, s->at, "expected `param` or `end`");
    if (!read_param(s, &step))
      return false;
  }
  return fail(s, s->at, "the launch has no `end`");
}

static bool read_memset(struct reader *s) {
  struct recipe_step step = {.kind = RECIPE_MEMSET};
  if (!read_expr(s, ',', &step.offset) || !expect_sign(s, ',') ||
      !read_expr(s, '\n', &step.bytes) || !end_of_line(s))
    return false;
  if (!s->r->workspace_bytes.id)
    return fail(s, s->start, "memset without a workspace");
  VEC_PUSH(s->r->arena, &s->r->steps, step);
  return true;
}

/* Parts come in this order; what follows may not go back. */
enum part { PART_ARG, PART_CHECK, PART_WORKSPACE, PART_STEP };

static bool read_body(struct reader *s) {
  static const char *const keys[] = {"arg", "check", "workspace", "memset", "launch"};
  static const enum part parts[] = {PART_ARG, PART_CHECK, PART_WORKSPACE, PART_STEP, PART_STEP};
  int last = PART_ARG;
  while (next_line(s)) {
    int key = take_one_of(s, keys, 5);
    if (key < 0)
      return fail(s, s->at, "expected arg, check, workspace, memset or launch");
    if ((int)parts[key] < last || (key == 2 && s->r->workspace_bytes.id))
      return fail(s, s->start, "`%s` is out of order", keys[key]);
    last = (int)parts[key];
    bool ok = key == 0   ? read_arg(s)
              : key == 1 ? read_check(s)
              : key == 2 ? read_expr(s, '\n', &s->r->workspace_bytes) && end_of_line(s)
              : key == 3 ? read_memset(s)
                         : read_launch(s);
    if (!ok)
      return false;
  }
  return true;
}

static bool read_header(struct reader *s) {
  uint32_t version;
  if (!next_line(s) || !take_word(s, "kiln-recipe"))
    return fail(s, s->at, "expected `kiln-recipe %d`", RECIPE_VERSION);
  if (!read_u32(s, UINT32_MAX, &version) || !end_of_line(s))
    return false;
  if (version != RECIPE_VERSION)
    return fail(s, s->start, "recipe version %u; this Kiln reads version %d", version,
                RECIPE_VERSION);
  if (!next_line(s) || !take_word(s, "kernel"))
    return fail(s, s->at, "expected `kernel`");
  if (!read_name(s, &s->r->kernel) || !end_of_line(s))
    return false;
  if (!next_line(s) || !take_word(s, "target"))
    return fail(s, s->at, "expected `target`");
  return read_name(s, &s->r->target) && end_of_line(s);
}

struct recipe *recipe_parse(struct arena *a, struct symtab *syms, struct diag_sink *diags,
                            uint32_t file, const char *text, size_t n) {
  struct reader s = {.r = recipe_new(a, syms), .diags = diags, .file = file, .next = text};
  s.end = text + n;
  s.start = s.at = s.eol = text;
  if (memchr(text, 0, n))
    fail(&s, text, "the text contains a NUL byte");
  else if (read_header(&s))
    read_body(&s);
  return s.failed ? NULL : s.r;
}
