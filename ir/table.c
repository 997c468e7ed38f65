/* The op table and the attribute keys as data, made from ops.def and attrs.def. */
#include "ir/table.h"

#include "ir/rules.h"

#include <string.h>

#define ANY      IR_ANY
#define TS       (1 << IR_TILE_STAGE | 1 << IR_SCHEDULED_STAGE)
#define S        (1 << IR_SCHEDULED_STAGE)
#define M        (1 << IR_MACHINE_STAGE)
#define TSM      (TS | M)
#define PURE     IR_PURE
#define COMMUTES IR_COMMUTES
#define READS    IR_READS
#define WRITES   IR_WRITES
#define EFFECT   IR_EFFECT
#define TERM     IR_TERM
#define SYNC     IR_SYNC
#define ASYNC    IR_ASYNC
#define EXACT    IR_EXACT

#define MAX_ATTRS (sizeof((struct ir_opinfo *)0)->attrs / sizeof((struct ir_opinfo *)0)->attrs[0])

/* How many attributes each row names. */
#define A(key) +1
#define O(key) +1
enum {
#define OP(id, text, in, out, blocks, stages, traits, rule, attrs) N_ATTRS_##id = 0 attrs,
#include "ir/ops.def"
};
#define OP(id, text, in, out, blocks, stages, traits, rule, attrs)                                 \
  _Static_assert(N_ATTRS_##id < MAX_ATTRS, "too many attributes on " text);
#include "ir/ops.def"
#undef A
#undef O

/* One place more than the attributes: an empty initialiser is not C17. */
#define A(key) {IR_ATTR_##key, true},
#define O(key) {IR_ATTR_##key, false},
static const struct ir_opinfo infos[] = {
    {.name = "no_op", .rule = IR_RULE_COUNT},
#define OP(id, text, in, out, blocks, stages_, traits_, rule_, attrs_)                             \
  {.name = text,                                                                                   \
   .n_in = in,                                                                                     \
   .n_out = out,                                                                                   \
   .n_blocks = blocks,                                                                             \
   .stages = stages_,                                                                              \
   .traits = traits_,                                                                              \
   .rule = IR_RULE_##rule_,                                                                        \
   .n_attrs = N_ATTRS_##id,                                                                        \
   .attrs = {attrs_{IR_ATTR_NONE, false}}},
#include "ir/ops.def"
};
#undef A
#undef O
_Static_assert(sizeof infos / sizeof infos[0] == IR_OPCODE_COUNT, "one row per opcode");
_Static_assert(IR_RULE_COUNT < 255 && IR_ATTR_COUNT < 255, "both are held in a byte");

static const uint8_t name_length[] = {
    0,
#define OP(id, text, in, out, blocks, stages, traits, rule, attrs) sizeof text - 1,
#include "ir/ops.def"
};

static const struct {
  const char *name;
  enum ir_attr_kind kind;
} attr_keys[] = {
    {"", IR_AK_INT},
#define ATTR(key, text, kind) {text, IR_AK_##kind},
#include "ir/attrs.def"
};

static const char *const res_kinds[] = {
#define RES_KIND(id, text) text,
#include "ir/res_kinds.def"
};

const struct ir_opinfo *ir_info(enum ir_opcode opcode) {
  return &infos[opcode];
}

bool ir_find_opcode(const char *name, size_t n, enum ir_opcode *out) {
  for (unsigned i = 1; i < IR_OPCODE_COUNT; i++)
    if (name_length[i] == n && memcmp(infos[i].name, name, n) == 0) {
      *out = (enum ir_opcode)i;
      return true;
    }
  return false;
}

const char *ir_attr_name(enum ir_attr_key key) {
  return attr_keys[key].name;
}

enum ir_attr_kind ir_attr_kind_of(enum ir_attr_key key) {
  return attr_keys[key].kind;
}

bool ir_find_attr(const char *name, size_t n, enum ir_attr_key *out) {
  for (unsigned i = 1; i < IR_ATTR_COUNT; i++)
    if (strlen(attr_keys[i].name) == n && memcmp(attr_keys[i].name, name, n) == 0) {
      *out = (enum ir_attr_key)i;
      return true;
    }
  return false;
}

const char *ir_res_kind_name(enum ir_res_kind kind) {
  return res_kinds[kind];
}

bool ir_find_res_kind(const char *name, size_t n, enum ir_res_kind *out) {
  for (unsigned i = 0; i < IR_RES_KIND_COUNT; i++)
    if (strlen(res_kinds[i]) == n && memcmp(res_kinds[i], name, n) == 0) {
      *out = (enum ir_res_kind)i;
      return true;
    }
  return false;
}
