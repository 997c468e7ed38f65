/* The syntax tree of kernel Lua, and its lexer and parser.
 *
 * lex.c and parse.c read full Lua 5.4; scope.c resolves every name to a slot of its function, an
 * upvalue index or a global, and every `goto` to a label. The tree lives in the arena of the state
 * for as long as the state does; nodes are never changed after parsing. Positions count lines and
 * bytes from 1. Syntax errors are worded as stock Lua words them. */
#ifndef KILN_FRONTEND_AST_H
#define KILN_FRONTEND_AST_H

#include "base/diag.h"
#include "base/mem.h"
#include "base/vec.h"

#include <lua.h>

/* An interned string constant or identifier: equal texts, equal pointers. */
struct fe_name {
  const char *s; /* NUL-terminated; may contain zeros */
  size_t n;
  uint32_t hash;
  uint16_t keyword; /* enum fe_token_type, or 0 */
  int ref;          /* of the Lua string in the registry, once it was needed; else 0 */
};

struct fe_names {
  struct arena *arena;
  struct fe_name **at; /* open addressing */
  uint32_t n, cap;
};

void fe_names_init(struct fe_names *t, struct arena *a);
struct fe_name *fe_name_get(struct fe_names *t, const char *s, size_t n);

enum fe_kind {
  /* expressions */
  FE_NIL,
  FE_FALSE,
  FE_TRUE,
  FE_INTEGER, /* u.i */
  FE_NUMBER,  /* u.f */
  FE_STRING,  /* u.name */
  FE_VARARG,
  FE_LOCAL,    /* u.var */
  FE_UPVALUE,  /* u.var, index */
  FE_GLOBAL,   /* u.name */
  FE_PAREN,    /* a: only around what has several values */
  FE_INDEX,    /* a[b] */
  FE_FIELD,    /* a.name */
  FE_CALL,     /* a(list) */
  FE_METHOD,   /* a:name(list) */
  FE_FUNCTION, /* u.func */
  FE_UNARY,    /* op a; op: enum fe_op, or FE_LENGTH */
  FE_BINARY,   /* a op b: arithmetic and bits */
  FE_COMPARE,
  FE_CONCAT, /* a .. b, b often another FE_CONCAT */
  FE_AND,
  FE_OR,
  FE_TABLE, /* list: values, list2: keys (NULL: positional) */
  /* statements */
  FE_BLOCK,      /* list; has_close */
  FE_DO,         /* body */
  FE_LOCAL_STAT, /* vars, list */
  FE_LOCAL_FUNC, /* u.var, a: FE_FUNCTION */
  FE_ASSIGN,     /* list = list2 */
  FE_CALL_STAT,  /* a */
  FE_IF,         /* list: FE_ARMs; body: else part or NULL */
  FE_ARM,        /* `if` or `elseif` a then body */
  FE_WHILE,      /* a, body */
  FE_REPEAT,     /* body, a */
  FE_FOR_NUM,    /* vars[0] = a, b, c (or NULL), body */
  FE_FOR_IN,     /* vars in list, body; index: first of four hidden slots */
  FE_RETURN,     /* list */
  FE_BREAK,
  FE_GOTO,  /* u.label */
  FE_LABEL, /* u.label */
};

#define FE_LENGTH 100 /* the op of `#` */

struct fe_label {
  struct fe_name *name;
  struct fe_node *block;
  uint32_t index; /* of the label's statement in block->list */
  uint32_t slots; /* slots of locals that are alive there */
  uint32_t line, col;
  bool at_end; /* nothing but labels follows in its block: what `goto continue` jumps to */
};

/* line:col is that of the operator, of a field's or method's name, of `[`, of a call's first token,
 * of a statement's first token. */
struct fe_node {
  uint8_t kind, op;
  bool parens;    /* was written in parentheses */
  bool has_close; /* blocks: declares a to-be-closed variable */
  uint32_t line, col;
  uint32_t n, n2, index, n_vars;
  struct fe_node *a, *b, *c, *body;
  struct fe_node **list, **list2;
  struct fe_var **vars;
  union {
    lua_Integer i;
    lua_Number f;
    struct fe_name *name;
    struct fe_var *var;
    struct fe_func *func;
    struct fe_label *label;
  } u;
};

struct fe_var {
  struct fe_name *name;
  struct fe_func *func;
  uint32_t slot;
  uint32_t seq; /* order of declaration in the file */
  uint32_t line, col;
  bool captured, assigned; /* by a closure; after its declaration */
  bool boxed;              /* both: lives in a box, otherwise closures copy the value */
  bool is_const, is_close;
};

struct fe_upvalue {
  struct fe_var *var;
  bool from_local; /* of the enclosing function: slot var->slot, otherwise its upvalue `index` */
  uint32_t index;
};

#define FE_MAX_UPVALUES 254 /* a C closure has 255, one holds the function */

struct fe_func {
  struct fe_func *up;
  const char *name; /* "f", "t.f", "t:f", or NULL */
  uint32_t file, line, col;
  uint32_t depth; /* 0: a file's main function */
  uint32_t n_params, n_slots;
  bool is_vararg;
  uint32_t n_upvalues;
  struct fe_upvalue *upvalues;
  struct fe_var **params;
  struct fe_node *body; /* FE_BLOCK */
};

/* ---- lex.c ---- */

enum fe_token_type {
  /* single characters stand for themselves */
  FE_T_EOF = 256,
  FE_T_NAME,
  FE_T_STRING,
  FE_T_INTEGER,
  FE_T_NUMBER,
  FE_T_CONCAT,
  FE_T_DOTS,
  FE_T_EQ,
  FE_T_GE,
  FE_T_LE,
  FE_T_NE,
  FE_T_SHL,
  FE_T_SHR,
  FE_T_IDIV,
  FE_T_DBCOLON,
  FE_T_AND, /* keywords, in the order of the names in lex.c */
  FE_T_BREAK,
  FE_T_DO,
  FE_T_ELSE,
  FE_T_ELSEIF,
  FE_T_END,
  FE_T_FALSE,
  FE_T_FOR,
  FE_T_FUNCTION,
  FE_T_GOTO,
  FE_T_IF,
  FE_T_IN,
  FE_T_LOCAL,
  FE_T_NIL,
  FE_T_NOT,
  FE_T_OR,
  FE_T_REPEAT,
  FE_T_RETURN,
  FE_T_THEN,
  FE_T_TRUE,
  FE_T_UNTIL,
  FE_T_WHILE,
};

struct fe_token {
  int type;
  uint32_t line, col;
  const char *text; /* its source */
  size_t n;
  union {
    struct fe_name *name;
    lua_Integer i;
    lua_Number f;
  } u;
};

/* Where syntax errors go; does not return. */
typedef void (*fe_syntax_fail)(void *user, enum diag_id id, struct diag_loc loc,
                               const char *message);

struct fe_lexer {
  const char *p, *end, *line_start;
  uint32_t line, file;
  struct fe_token now, ahead;
  bool has_ahead;
  struct arena *arena;
  struct fe_names *names;
  lua_State *L; /* converts numerals */
  fe_syntax_fail fail;
  void *user;
};

void fe_lex_init(struct fe_lexer *x, uint32_t file, const char *text, size_t n);
void fe_lex_next(struct fe_lexer *x);
int fe_lex_peek(struct fe_lexer *x); /* type of the token after `now` */
/* "'end'", "<eof>", "'x'": a token type as messages show it. Arena memory or constant. */
const char *fe_token_name(struct fe_lexer *x, int type);
_Noreturn void fe_lex_error(struct fe_lexer *x, enum diag_id id, uint32_t line, uint32_t col,
                            const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* "message near 'token'" at the current token. */
_Noreturn void fe_near_error(struct fe_lexer *x, const char *message);

/* ---- scope.c ---- */

/* A block being parsed. */
struct fe_scope {
  struct fe_scope *up;
  struct fe_node *block;
  uint32_t n_active, n_labels, n_gotos; /* of the function when the scope began */
  uint32_t first_slot;
  bool is_loop;
};

struct fe_goto {
  struct fe_node *node;
  struct fe_name *name;
  uint32_t n_active; /* variables alive at the goto, as seen from the innermost open scope */
};

struct fe_funcstate {
  struct fe_funcstate *up;
  struct fe_func *func;
  struct fe_scope *scope;
  uint32_t next_slot;
  VEC(struct fe_var *) active;
  VEC(struct fe_label *) labels; /* of open blocks */
  VEC(struct fe_goto) gotos;     /* not resolved yet */
  VEC(struct fe_upvalue) upvalues;
};

struct fe_parser {
  struct fe_lexer lex;
  struct fe_funcstate *fs;
  struct fe_name *env; /* "_ENV" */
  uint32_t n_vars;
  uint32_t work;                              /* comparisons of names since the last charge */
  void (*charge)(void *user, uint64_t steps); /* lex.user; raises when the limit is passed */
  const char *stack_base;                     /* frame address where the limit counts from */
  size_t stack_limit;
};

void fe_scope_open(struct fe_parser *p, struct fe_scope *s, struct fe_node *block, bool is_loop);
void fe_scope_close(struct fe_parser *p);
/* Makes a variable; it is not visible before fe_scope_activate. */
struct fe_var *fe_scope_var(struct fe_parser *p, struct fe_name *name, uint32_t line, uint32_t col);
void fe_scope_activate(struct fe_parser *p, struct fe_var *v);
/* Reserves n slots that no name refers to; the first one's number. */
uint32_t fe_scope_hidden(struct fe_parser *p, uint32_t n);
void fe_func_open(struct fe_parser *p, struct fe_funcstate *fs, struct fe_func *f);
void fe_func_close(struct fe_parser *p);
/* Fills in kind, u and index of a name's node. */
void fe_scope_resolve(struct fe_parser *p, struct fe_node *node, struct fe_name *name);
/* Checks that a target may be assigned to and marks its variable. */
void fe_scope_assign(struct fe_parser *p, struct fe_node *target);
void fe_scope_goto(struct fe_parser *p, struct fe_node *node, struct fe_name *name);
void fe_scope_label(struct fe_parser *p, struct fe_label *label, bool last);
bool fe_scope_in_loop(const struct fe_parser *p);

/* ---- parse.c ---- */

/* The main function of a file. p->lex (with arena, names, L, fail, user), charge and the stack
 * limits must be set, the rest zero. Raises through lex.fail. */
struct fe_func *fe_parse(struct fe_parser *p, uint32_t file, const char *text, size_t n);

/* True where the C stack below `base` is used up. */
static inline bool fe_stack_over(const char *base, size_t limit) {
  const char *here = __builtin_frame_address(0);
  return (size_t)(base - here) > limit && here < base;
}

#endif
