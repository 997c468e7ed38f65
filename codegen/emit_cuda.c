/* CUDA C from machine IR: one op, one statement.
 *
 * Expects a verified machine module with its recipe. The text depends on the module alone, byte for
 * byte; with lineinfo also on source locations. Scalars are constants named in order of appearance,
 * fragments arrays of registers under their own names, buffers offsets into one block of dynamic
 * shared memory. */
#include "codegen/emit.h"

#include "base/check.h"
#include "ir/resource.h"

#include <ctype.h>
#include <inttypes.h>
#include <strings.h>

void emit_line(struct emit *e, const char *fmt, ...) {
  va_list ap;
  bool directive = fmt[0] == '#';
  sb_printf(&e->body, "%*s", directive ? 0 : e->indent * 2, "");
  va_start(ap, fmt);
  sb_vprintf(&e->body, fmt, ap);
  va_end(ap);
  sb_putc(&e->body, '\n');
}

const char *emit_use(struct emit *e, enum emit_helper h) {
  static const char *const ids[] = {
#define HELPER(id, text) #id,
#include "codegen/emit_helpers.def"
  };
  e->used[h] = true;
  char *name = arena_strdup(e->a, ids[h]);
  for (char *p = name; *p; p++)
    *p = (char)tolower((unsigned char)*p);
  return name;
}

const char *emit_dtype(enum dtype t) {
  switch (t) {
  case DT_BOOL: return "bool";
  case DT_INDEX:
  case DT_S64: return "long long";
  case DT_S4:
  case DT_S8: return "signed char";
  case DT_U4:
  case DT_U8: return "unsigned char";
  case DT_S32: return "int";
  case DT_F16: return "f16";
  case DT_BF16: return "bf16";
  case DT_E4M3: return "e4m3";
  case DT_E5M2: return "e5m2";
  case DT_F32: return "float";
  case DT_F64: return "double";
  case DT_COUNT: break;
  }
  KILN_UNREACHABLE();
}

const char *emit_type(struct emit *e, struct ir_type t) {
  const char *name = emit_dtype((enum dtype)t.dtype);
  if (t.kind == IR_PTR) /* to 4-bit elements: twice the address, and which half */
    return dtype_bits((enum dtype)t.dtype) == 4 ? "long long " : arena_printf(e->a, "%s *", name);
  return name;
}

bool emit_is_const(const struct emit *e, struct ir_val v, int64_t *value) {
  struct ir_op def = ir_value_at(e->m, v)->def;
  if (!def.id || ir_op_at(e->m, def)->opcode != IR_CONST ||
      dtype_is_float((enum dtype)ir_type_of(e->m, v).dtype))
    return false;
  *value = ir_get_attr(e->m, def, IR_ATTR_value)->i;
  return true;
}

const char *emit_val(struct emit *e, struct ir_val v) {
  struct ir_op def = ir_value_at(e->m, v)->def;
  if (def.id && ir_op_at(e->m, def)->opcode == IR_CONST) {
    const struct ir_attr *c = ir_get_attr(e->m, def, IR_ATTR_value);
    return emit_const(e, (enum dtype)ir_type_of(e->m, v).dtype, c->i, c->f);
  }
  KILN_ASSERT(e->value_name[v.id]);
  return e->value_name[v.id];
}

const char *emit_new_name(struct emit *e, struct ir_val v) {
  return e->value_name[v.id] = arena_printf(e->a, "v%u", e->n_values++);
}

/* ---- control ---- */

static void emit_block(struct emit *e, struct ir_block b);

/* Declares variables for values that change: results of an if, values that a loop carries. */
static void declare(struct emit *e, struct ir_val v, const char *init) {
  const char *type = emit_type(e, ir_type_of(e->m, v));
  const char *name = emit_new_name(e, v);
  if (init)
    emit_line(e, "%s %s = %s;", type, name, init);
  else
    emit_line(e, "%s %s;", type, name);
}

/* to[i] = from[i] for all i at once: through temporaries where a later source would be
 * overwritten. */
static void assign_all(struct emit *e, uint32_t n, const struct ir_val *to,
                       const struct ir_val *from) {
  const char **text = ARENA_ARRAY(e->a, const char *, n + 1);
  for (uint32_t i = 0; i < n; i++) {
    text[i] = emit_val(e, from[i]);
    for (uint32_t j = 0; j < i; j++)
      if (from[i].id == to[j].id) {
        const char *temp = arena_printf(e->a, "t%u", e->n_values++);
        emit_line(e, "const %s %s = %s;", emit_type(e, ir_type_of(e->m, from[i])), temp, text[i]);
        text[i] = temp;
        break;
      }
  }
  for (uint32_t i = 0; i < n; i++)
    if (from[i].id != to[i].id)
      emit_line(e, "%s = %s;", emit_val(e, to[i]), text[i]);
}

static void emit_body(struct emit *e, struct ir_block b) {
  e->indent++;
  emit_block(e, b);
  e->indent--;
}

static const struct ir_opnode *terminator(struct emit *e, struct ir_block b) {
  return ir_op_at(e->m, ir_block_at(e->m, b)->last);
}

static void emit_each(struct emit *e, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(e->m, o);
  const struct ir_blocknode *body = ir_block_at(e->m, n->blocks[0]);
  const char *r = emit_new_name(e, body->args.at[0]);
  bool rolled = ir_attr_int(e->m, o, IR_ATTR_rolled, 0) != 0;
  emit_line(e, rolled ? "#pragma unroll 1" : "#pragma unroll");
  emit_line(e, "for (int %s = 0; %s < %d; %s++) {", r, r,
            (int)ir_attr_int(e->m, o, IR_ATTR_count, 1), r);
  emit_body(e, n->blocks[0]);
  emit_line(e, "}");
}

static void emit_for(struct emit *e, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(e->m, o);
  const struct ir_blocknode *body = ir_block_at(e->m, n->blocks[0]);
  struct ir_val *args = body->args.at;
  uint32_t carried = n->n_out;
  for (uint32_t i = 0; i < carried; i++)
    declare(e, args[1 + i], emit_val(e, n->in[3 + i]));
  const char *lo = emit_val(e, n->in[0]), *hi = emit_val(e, n->in[1]),
             *step = emit_val(e, n->in[2]);
  const char *k = emit_new_name(e, args[0]);
  emit_line(e, "#pragma unroll 1");
  emit_line(e, "for (%s %s = %s; %s < %s; %s += %s) {", emit_type(e, ir_type_of(e->m, args[0])), k,
            lo, k, hi, k, step);
  emit_body(e, n->blocks[0]);
  e->indent++;
  assign_all(e, carried, args + 1, terminator(e, n->blocks[0])->in);
  e->indent--;
  emit_line(e, "}");
  for (uint32_t i = 0; i < carried; i++)
    e->value_name[n->out[i].id] = e->value_name[args[1 + i].id];
}

static void emit_if(struct emit *e, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(e->m, o);
  for (uint32_t i = 0; i < n->n_out; i++)
    declare(e, n->out[i], NULL);
  emit_line(e, "if (%s) {", emit_val(e, n->in[0]));
  for (int side = 0; side < 2; side++) {
    const struct ir_opnode *yield = terminator(e, n->blocks[side]);
    bool empty = ir_block_at(e->m, n->blocks[side])->first.id ==
                     ir_block_at(e->m, n->blocks[side])->last.id &&
                 n->n_out == 0;
    if (side == 1 && empty)
      break;
    if (side == 1)
      emit_line(e, "} else {");
    emit_body(e, n->blocks[side]);
    e->indent++;
    assign_all(e, n->n_out, n->out, yield->in);
    e->indent--;
  }
  emit_line(e, "}");
}

static void emit_while(struct emit *e, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(e->m, o);
  const struct ir_blocknode *test = ir_block_at(e->m, n->blocks[0]),
                            *body = ir_block_at(e->m, n->blocks[1]);
  for (uint32_t i = 0; i < test->args.n; i++)
    declare(e, test->args.at[i], emit_val(e, n->in[i]));
  for (uint32_t i = 0; i < n->n_out; i++) {
    declare(e, n->out[i], NULL);
    e->value_name[body->args.at[i].id] = e->value_name[n->out[i].id];
  }
  emit_line(e, "for (;;) {");
  emit_body(e, n->blocks[0]);
  e->indent++;
  const struct ir_opnode *condition = terminator(e, n->blocks[0]);
  assign_all(e, n->n_out, n->out, condition->in + 1);
  emit_line(e, "if (!(%s)) break;", emit_val(e, condition->in[0]));
  e->indent--;
  emit_body(e, n->blocks[1]);
  e->indent++;
  assign_all(e, test->args.n, test->args.at, terminator(e, n->blocks[1])->in);
  e->indent--;
  emit_line(e, "}");
}

/* `#line` for the op's Lua source, where it differs from the last one. */
static void emit_location(struct emit *e, struct ir_op o) {
  uint32_t loc = ir_op_at(e->m, o)->loc;
  if (!e->opt.lineinfo || !e->opt.files || !loc)
    return;
  struct diag_loc at = e->m->locs.at[loc].at;
  if (!at.line || (at.line == e->line && at.file == e->file))
    return;
  e->line = at.line;
  e->file = at.file;
  emit_line(e, "#line %u \"%s\"", at.line, diag_file_name(e->opt.files, at.file));
}

static void emit_op(struct emit *e, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(e->m, o);
  if (n->opcode == IR_CONST || (ir_info(n->opcode)->traits & IR_TERM))
    return;
  emit_location(e, o);
  if (emit_is_scalar(n->opcode)) {
    const char *text = emit_scalar(e, o);
    const char *type = emit_type(e, ir_type_of(e->m, n->out[0]));
    const char *name = emit_new_name(e, n->out[0]);
    emit_line(e, "%s%s %s = %s;", ir_type_of(e->m, n->out[0]).kind == IR_PTR ? "" : "const ", type,
              name, text);
    if (ir_attr_int(e->m, o, IR_ATTR_late, 0))
      emit_line(e, "asm volatile(\"\" : \"+l\"(%s));", name);
  } else if (n->opcode == IR_EACH) {
    emit_each(e, o);
  } else if (n->opcode == IR_FOR) {
    emit_for(e, o);
  } else if (n->opcode == IR_IF) {
    emit_if(e, o);
  } else if (n->opcode == IR_WHILE) {
    emit_while(e, o);
  } else {
    bool known = emit_memory(e, o);
    KILN_ASSERT(known);
    (void)known;
  }
}

static void emit_block(struct emit *e, struct ir_block b) {
  IR_EACH_OP (e->m, b, o)
    emit_op(e, o);
}

/* ---- the function ---- */

bool cg_has_launch(const struct ir_module *m) {
  for (uint32_t i = 0; m->recipe && i < m->recipe->steps.n; i++)
    if (m->recipe->steps.at[i].kind == RECIPE_KERNEL)
      return true;
  return false;
}

static const struct recipe_step *kernel_step(const struct ir_module *m) {
  for (uint32_t i = 0; i < m->recipe->steps.n; i++)
    if (m->recipe->steps.at[i].kind == RECIPE_KERNEL)
      return &m->recipe->steps.at[i];
  KILN_UNREACHABLE();
}

/* A comment that says what this is: config, facts, shared memory, fragments. */
static void put_head(const struct emit *e, struct strbuf *out) {
  const struct ir_module *m = e->m;
  sb_printf(out, "// %s for %s. Generated by Kiln: change the kernel file, not this text.\n",
            ir_sym(m, m->kernel), ir_sym(m, m->target));
  for (uint32_t i = 0; i < m->config.n; i++) {
    const struct ir_config_entry *c = &m->config.at[i];
    sb_printf(out, i % 6 ? ", %s = " : "%s%s = ",
              i % 6 ? ir_sym(m, c->key)
              : i   ? "\n//   "
                    : "//   ",
              ir_sym(m, c->key));
    switch (c->kind) {
    case IR_CFG_NUM: sb_put_double(out, c->f); break;
    case IR_CFG_BOOL: sb_puts(out, c->i ? "true" : "false"); break;
    case IR_CFG_DTYPE: sb_puts(out, dtype_name((enum dtype)c->i)); break;
    case IR_CFG_STR: sb_puts(out, ir_sym(m, c->s)); break;
    case IR_CFG_INT: sb_printf(out, "%" PRId64, c->i); break;
    }
  }
  sb_puts(out, m->config.n ? "\n" : "");
  for (uint32_t i = 0; i < m->facts.n; i++)
    sb_printf(out, "%s%s %s %" PRId64, i == 0 ? "// Assumes " : ", ", ir_sym(m, m->facts.at[i].sym),
              m->facts.at[i].is_value ? "==" : "divisible by", m->facts.at[i].n);
  sb_puts(out, m->facts.n ? ".\n" : "");
  for (uint32_t i = 1; i < m->res.n; i++) {
    const struct ir_res *r = &m->res.at[i];
    int64_t offset = ir_res_int(r, IR_ATTR_offset, 0), bytes = ir_res_int(r, IR_ATTR_bytes, 0);
    int64_t slots = ir_res_int(r, IR_ATTR_slots, 1);
    bool ring = r->kind == IR_RES_PIPE && ir_pipe_has_barriers(m, r);
    if (r->kind != IR_RES_FRAG && r->kind != IR_RES_BUF && r->kind != IR_RES_TMAP && !ring)
      continue;
    sb_printf(out, "// %s: ", e->res_name[i]);
    if (r->type.kind != IR_NONE)
      ir_type_describe(r->type, out);
    if (r->kind == IR_RES_FRAG) {
      sb_puts(out, " in registers, ");
      layout_print(m->layouts.at[r->layout], out);
    } else if (r->kind == IR_RES_BUF) {
      sb_printf(out, " in shared memory, %" PRId64 " bytes at %" PRId64, bytes, offset);
    } else if (r->kind == IR_RES_TMAP) {
      sb_printf(out, ", tensor map of %s", ir_res_word(m, r, IR_ATTR_arg));
    } else {
      sb_printf(out, "mbarriers of %" PRId64 " slots, full and empty, at %" PRId64, slots, offset);
    }
    sb_putc(out, '\n');
  }
  sb_putc(out, '\n');
}

static int64_t config_int(const struct ir_module *m, const char *key, int64_t otherwise) {
  for (uint32_t i = 0; i < m->config.n; i++)
    if (m->config.at[i].kind == IR_CFG_INT && str_eq(ir_sym(m, m->config.at[i].key), key))
      return m->config.at[i].i;
  return otherwise;
}

static void put_params(struct emit *e, struct strbuf *out) {
  const struct ir_module *m = e->m;
  const struct ir_blocknode *body = ir_block_at(m, m->body);
  for (uint32_t i = 0; i < m->params.n; i++) {
    const struct ir_param *p = &m->params.at[i];
    struct ir_val v = body->args.at[i];
    bool is_arg = p->kind == RECIPE_PARAM_PTR || p->kind == RECIPE_PARAM_SCALAR;
    if (p->kind == RECIPE_PARAM_TMAP) {
      sb_printf(out, "%sconst __grid_constant__ tensor_map %s", i ? ",\n    " : "\n    ",
                e->res_name[p->res]);
      continue;
    }
    const char *name = is_arg ? arena_printf(e->a, "arg_%s", ir_sym(m, m->args.at[p->arg].name))
                              : arena_printf(e->a, "n%u", i);
    e->value_name[v.id] = name;
    sb_puts(out, i ? ",\n    " : "\n    ");
    bool is_ptr = ir_type_of(m, v).kind == IR_PTR;
    if (is_ptr && dtype_bits((enum dtype)ir_type_of(m, v).dtype) == 4) {
      e->value_name[v.id] = arena_printf(e->a, "%s_at", name);
      emit_line(e, "const long long %s_at = (long long)%s * 2;", name, name);
    }
    if (is_ptr)
      sb_printf(out, "%s *__restrict__ %s", emit_dtype((enum dtype)ir_type_of(m, v).dtype), name);
    else
      sb_printf(out, "const %s %s", emit_type(e, ir_type_of(m, v)), name);
    if (p->kind != RECIPE_PARAM_PTR && p->value.id) {
      sb_puts(out, is_ptr ? " /* workspace + " : " /* ");
      expr_print(&m->exprs, p->value, out);
      sb_puts(out, " */");
    }
  }
}

/* May a resource not be called so? Words of C++ and of the emitted text; `v0`, `n0`, `p0` are
 * values, `r1_x` another resource's. */
static bool is_reserved(const char *name) {
  static const char words[] =
      " smem smem_at alignas alignof and asm auto bool break case catch char class const continue "
      "default delete do double else enum explicit export extern false float for friend goto if "
      "inline int long mutable namespace new not operator or private protected public register "
      "return short signed sizeof static struct switch template this throw true try typedef "
      "typeid typename union unsigned using virtual void volatile while xor bf16 f16 e4m3 e5m2 "
      "tensor_map printf fma fabs fmin fmax exp exp2 log log2 sin cos erf tanh sqrt rsqrt ";
  static const char *const helpers[] = {
#define HELPER(id, text) #id,
#include "codegen/emit_helpers.def"
  };
  size_t n = strlen(name);
  for (const char *at = words; (at = strstr(at, name)); at++)
    if (at[-1] == ' ' && at[n] == ' ')
      return true;
  for (size_t i = 0; i < sizeof helpers / sizeof helpers[0]; i++)
    if (strcasecmp(helpers[i], name) == 0)
      return true;
  return (strchr("vnp", name[0]) && name[1] >= '0' && name[1] <= '9') ||
         !isalpha((unsigned char)name[0]) || str_starts(name, "arg_") ||
         str_starts(name, "wgmma_") || str_starts(name, "tma_");
}

/* Resource names are the module's own, made unique words. */
static void name_resources(struct emit *e) {
  const struct ir_module *m = e->m;
  e->res_name = ARENA_ARRAY(e->a, const char *, m->res.n + 1);
  for (uint32_t i = 1; i < m->res.n; i++) {
    const char *name = ir_sym(m, m->res.at[i].name);
    char *word = arena_strdup(e->a, *name ? name : "r");
    for (char *c = word; *c; c++)
      if (!isalnum((unsigned char)*c))
        *c = '_';
    bool taken = *name == 0 || is_reserved(word);
    for (uint32_t j = 1; j < i && !taken; j++)
      taken = str_eq(word, e->res_name[j]);
    e->res_name[i] = taken ? arena_printf(e->a, "r%u_%s", i, word) : word;
  }
}

static bool has_maps(const struct ir_module *m) {
  for (uint32_t i = 1; i < m->res.n; i++)
    if (m->res.at[i].kind == IR_RES_TMAP)
      return true;
  return false;
}

void cg_emit(const struct ir_module *m, struct cg_emit_options opt, struct strbuf *out) {
  struct emit e = {.m = m, .opt = opt, .a = out->arena, .body = {.arena = out->arena}, .indent = 1};
  e.makes.arena = e.a;
  e.value_name = ARENA_ARRAY(e.a, const char *, m->values.n + 1);
  name_resources(&e);
  const struct recipe_step *step = kernel_step(m);
  struct strbuf params = {.arena = e.a};
  put_params(&e, &params);
  bool smem = step->smem_bytes > 0;
  if (smem) {
    emit_line(&e, "extern __shared__ __align__(1024) unsigned char smem[];");
    emit_line(&e, "const unsigned smem_at = %s(smem);", emit_use(&e, EMIT_SHARED_ADDRESS));
  }
  for (uint32_t i = 1; i < m->res.n; i++)
    if (m->res.at[i].kind == IR_RES_FRAG)
      emit_frag(&e, i);
    else if (m->res.at[i].kind == IR_RES_CURSOR)
      emit_cursor(&e, i);
  emit_block(&e, m->body);

  put_head(&e, out);
  sb_puts(out, "typedef unsigned short bf16; // bits\ntypedef unsigned short f16;\n"
               "typedef unsigned char e4m3;\ntypedef unsigned char e5m2;\n");
  sb_puts(out, has_maps(m) ? "struct __align__(64) tensor_map {\n  unsigned long long bits[16];\n"
                             "};\n\n"
                           : "\n");
  emit_helpers(&e, out);
  int64_t blocks = config_int(m, "schedule.blocks", 1);
  sb_printf(out, "extern \"C\" __global__ void __launch_bounds__(%u, %" PRId64 ")\n%s(",
            step->block[0], blocks, step->entry);
  sb_puts(out, sb_str(&params));
  sb_puts(out, ") {\n");
  sb_puts(out, sb_str(&e.body));
  sb_puts(out, "}\n");
}
