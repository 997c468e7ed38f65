/* Small integer expressions over named symbols: grids, workspace sizes, derived scalars and
 * legality predicates of launch recipes; also the symbolic dims of IR views.
 *
 * Nodes are hash-consed in a pool, so equal expressions have equal refs; construction folds
 * constants and the neutral elements. Values are int64; evaluation reports overflow and division by
 * zero instead of wrapping, in the parts it reaches: `and`, `or` and select look only at the
 * operands they need, and x * 0 is folded away whatever x. Division and modulo floor. Comparisons
 * and logic give 0 or 1. */
#ifndef KILN_BASE_EXPR_H
#define KILN_BASE_EXPR_H

#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"

/* X(op, text, arity): infix where text is a sign, a call otherwise. */
#define EXPR_OPS(X)                                                                                \
  X(ADD, "+", 2)                                                                                   \
  X(SUB, "-", 2)                                                                                   \
  X(MUL, "*", 2)                                                                                   \
  X(DIV, "//", 2)                                                                                  \
  X(MOD, "%", 2)                                                                                   \
  X(MIN, "min", 2)                                                                                 \
  X(MAX, "max", 2)                                                                                 \
  X(CDIV, "cdiv", 2)                                                                               \
  X(EQ, "==", 2)                                                                                   \
  X(NE, "~=", 2)                                                                                   \
  X(LT, "<", 2)                                                                                    \
  X(LE, "<=", 2)                                                                                   \
  X(AND, "and", 2)                                                                                 \
  X(OR, "or", 2)                                                                                   \
  X(NOT, "not", 1)                                                                                 \
  X(SELECT, "select", 3)

enum expr_op {
  EXPR_CONST,
  EXPR_SYM,
#define X(op, text, arity) EXPR_##op,
  EXPR_OPS(X)
#undef X
};

struct expr {
  uint32_t id; /* 0 is "no expression" */
};

struct expr_node {
  enum expr_op op;
  int64_t value;  /* EXPR_CONST */
  struct sym sym; /* EXPR_SYM */
  struct expr in[3];
  uint32_t
      size; /* nodes of the expression as a tree (shared parts counted each time), saturating */
};

/* Larger expressions are refused by expr_parse and expr_eval, and printed as `<too large>`: sharing
 * can make a tree exponentially larger than its pool. Builders check expr_size. */
#define EXPR_MAX_SIZE 4096

struct expr_pool {
  struct arena *arena;
  struct symtab *syms;
  VEC(struct expr_node) nodes;
  struct map by_hash;
};

void expr_pool_init(struct expr_pool *p, struct arena *a, struct symtab *syms);
struct expr expr_const(struct expr_pool *p, int64_t value);
struct expr expr_sym(struct expr_pool *p, const char *name);
struct expr expr_op1(struct expr_pool *p, enum expr_op op, struct expr a);
struct expr expr_op2(struct expr_pool *p, enum expr_op op, struct expr a, struct expr b);
struct expr expr_op3(struct expr_pool *p, enum expr_op op, struct expr a, struct expr b,
                     struct expr c);
static inline const struct expr_node *expr_at(const struct expr_pool *p, struct expr e) {
  return &p->nodes.at[e.id];
}
static inline uint32_t expr_size(const struct expr_pool *p, struct expr e) {
  return p->nodes.at[e.id].size;
}
/* True and *value if e is a constant. */
bool expr_is_const(const struct expr_pool *p, struct expr e, int64_t *value);
/* Copies an expression into another pool (other symtab). */
struct expr expr_import(struct expr_pool *to, const struct expr_pool *from, struct expr e);

/* Infix text with the fewest parentheses: Lua's operators and precedence (`not` is a prefix), calls
 * for min, max, cdiv, select. Symbol names ([A-Za-z_][A-Za-z0-9_.]*, none of and, or, not) are
 * printed as they are. */
void expr_print(const struct expr_pool *p, struct expr e, struct strbuf *out);
/* Parses text up to `end`; on failure returns {0} and *error (static text) and *at. */
struct expr expr_parse(struct expr_pool *p, const char *text, const char *end, const char **error,
                       const char **at);

/* Values of symbols: returns false if unknown. */
typedef bool (*expr_lookup)(void *user, const char *name, int64_t *value);
/* False on an unknown symbol, overflow or division by zero; *why then names it (static text or the
 * symbol's name). Allocates nothing. */
bool expr_eval(const struct expr_pool *p, struct expr e, expr_lookup lookup, void *user,
               int64_t *value, const char **why);

#endif
