/* runtime/abi_*.h against the installed CUDA headers, through libclang.
 *
 * libclang is opened at run time and the few of its functions used are declared here, so that the
 * test builds anywhere. Two translation units are parsed: ours, and the real headers. Every
 * function of our tables is looked up by its exported name in the real headers and compared:
 * result and parameters by kind, size and signedness, pointers by what they point to and its
 * const. Structs are compared by size and by the offset and size of each of our fields, values by
 * asking the real headers for them in an enum. What is not installed is skipped, counted and
 * said. */
#include "help_rt.h"

#include "runtime/abi_cublas.h"
#include "runtime/abi_cuda.h"
#include "runtime/abi_nvml.h"
#include "runtime/abi_nvrtc.h"

#include "base/str.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- libclang's C interface, as far as used (stable since LLVM 3.7) ---- */

typedef struct {
  const void *data;
  unsigned flags;
} CXString;
typedef struct {
  int kind, xdata;
  const void *data[3];
} CXCursor;
typedef struct {
  int kind;
  void *data[2];
} CXType;
struct CXUnsavedFile {
  const char *name, *contents;
  unsigned long length;
};
typedef int (*visitor)(CXCursor cursor, CXCursor parent, void *user);
typedef int (*field_visitor)(CXCursor cursor, void *user);

enum {
  CURSOR_STRUCT = 2,
  CURSOR_UNION = 3,
  CURSOR_ENUM = 5,
  CURSOR_FIELD = 6,
  CURSOR_ENUM_CONSTANT = 7,
  CURSOR_FUNCTION = 8,
  CURSOR_TYPEDEF = 20
};
enum {
  TYPE_VOID = 2,
  TYPE_FLOAT = 21,
  TYPE_DOUBLE = 22,
  TYPE_POINTER = 101,
  TYPE_RECORD = 105,
  TYPE_ENUM = 106,
  TYPE_ARRAY = 112,
  TYPE_OPEN_ARRAY = 114
};
enum { VISIT_CONTINUE = 1, VISIT_RECURSE = 2 };

#define CLANG(X)                                                                                   \
  X(void *, clang_createIndex, (int, int))                                                         \
  X(void *, clang_parseTranslationUnit,                                                            \
    (void *, const char *, const char *const *, int, struct CXUnsavedFile *, unsigned, unsigned))  \
  X(void, clang_disposeTranslationUnit, (void *))                                                  \
  X(void, clang_disposeIndex, (void *))                                                            \
  X(unsigned, clang_getNumDiagnostics, (void *))                                                   \
  X(void *, clang_getDiagnostic, (void *, unsigned))                                               \
  X(int, clang_getDiagnosticSeverity, (void *))                                                    \
  X(CXString, clang_formatDiagnostic, (void *, unsigned))                                          \
  X(CXCursor, clang_getTranslationUnitCursor, (void *))                                            \
  X(unsigned, clang_visitChildren, (CXCursor, visitor, void *))                                    \
  X(CXString, clang_getCursorSpelling, (CXCursor))                                                 \
  X(CXType, clang_getCursorType, (CXCursor))                                                       \
  X(CXType, clang_getCanonicalType, (CXType))                                                      \
  X(CXType, clang_getPointeeType, (CXType))                                                        \
  X(CXType, clang_getArrayElementType, (CXType))                                                   \
  X(CXType, clang_getResultType, (CXType))                                                         \
  X(int, clang_getNumArgTypes, (CXType))                                                           \
  X(CXType, clang_getArgType, (CXType, unsigned))                                                  \
  X(unsigned, clang_isConstQualifiedType, (CXType))                                                \
  X(long long, clang_Type_getSizeOf, (CXType))                                                     \
  X(long long, clang_Type_getOffsetOf, (CXType, const char *))                                     \
  X(unsigned, clang_Type_visitFields, (CXType, field_visitor, void *))                             \
  X(long long, clang_getEnumConstantDeclValue, (CXCursor))                                         \
  X(const char *, clang_getCString, (CXString))                                                    \
  X(void, clang_disposeString, (CXString))                                                         \
  X(CXString, clang_getTypeSpelling, (CXType))

static struct {
#define X(result, name, params) result(*name) params;
  CLANG(X)
#undef X
} clang;

static bool open_clang(void) {
  static const char *const places[] = {"libclang.so.1",    "libclang-14.so.1", "libclang-14.so.13",
                                       "libclang-15.so.1", "libclang-16.so.1", "libclang-19.so.1"};
  void *lib = NULL;
  for (size_t i = 0; i < sizeof places / sizeof places[0] && !lib; i++)
    lib = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
  glob_t found = {0};
  if (!lib && glob("/usr/lib/llvm-*/lib/libclang.so.1", 0, NULL, &found) == 0)
    lib = dlopen(found.gl_pathv[found.gl_pathc - 1], RTLD_NOW | RTLD_LOCAL);
  globfree(&found);
  if (!lib)
    return false;
  struct {
    const char *name;
    void *slot;
  } symbols[] = {
#define X(result, name, params) {#name, &clang.name},
      CLANG(X)
#undef X
  };
  for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
    void *p = dlsym(lib, symbols[i].name);
    if (!p)
      return false;
    memcpy(symbols[i].slot, &p, sizeof p);
  }
  return true;
}

/* ---- the two sides ---- */

struct fixture {
  void *index, *ours, *theirs;
  struct help_arena mem;
  const char *include; /* folder of the CUDA headers */
  bool has_nvml, has_cublas;
  int compared, wrong;
};
static struct fixture fx;
static const char *skip_reason;

static bool exists(const char *folder, const char *file) {
  return access(arena_printf(&fx.mem.arena, "%s/%s", folder, file), R_OK) == 0;
}

static const char *find_headers(void) {
  const char *home = getenv("CUDA_HOME");
  const char *tries[] = {home ? arena_printf(&fx.mem.arena, "%s/include", home) : "/nonexistent",
                         "/usr/local/cuda/include", "/opt/cuda/include", "/usr/include"};
  for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++)
    if (exists(tries[i], "cuda.h") && exists(tries[i], "nvrtc.h"))
      return tries[i];
  return NULL;
}

static void *parse(const char *name, const char *text, const char *include) {
  struct CXUnsavedFile file = {name, text, strlen(text)};
  const char *args[] = {"-x",
                        "c",
                        "-std=c11",
                        "-I" KILN_SRC_DIR,
                        "-I",
                        include,
                        "-D__CUDA_API_VERSION_INTERNAL",
                        "-isystem",
                        "/usr/include"};
  void *tu = clang.clang_parseTranslationUnit(fx.index, name, args, 9, &file, 1, 0);
  assert_non_null(tu);
  bool bad = false;
  for (unsigned i = 0; i < clang.clang_getNumDiagnostics(tu); i++) {
    void *d = clang.clang_getDiagnostic(tu, i);
    if (clang.clang_getDiagnosticSeverity(d) < 3)
      continue;
    CXString s = clang.clang_formatDiagnostic(d, 1);
    printf("%s\n", clang.clang_getCString(s));
    clang.clang_disposeString(s);
    bad = true;
  }
  assert_false(bad);
  return tu;
}

struct lookup {
  const char *name;
  int kinds[3];
  CXCursor found;
  bool is_found;
};

static int find_visitor(CXCursor c, CXCursor parent, void *user) {
  (void)parent;
  struct lookup *l = user;
  CXString s = clang.clang_getCursorSpelling(c);
  const char *name = clang.clang_getCString(s);
  for (int i = 0; i < 3; i++)
    if (c.kind == l->kinds[i] && name && strcmp(name, l->name) == 0) {
      l->found = c;
      l->is_found = true;
    }
  clang.clang_disposeString(s);
  return l->is_found ? 0 : c.kind == CURSOR_ENUM ? VISIT_RECURSE : VISIT_CONTINUE;
}

static bool find(void *tu, const char *name, int k0, int k1, int k2, CXCursor *out) {
  struct lookup l = {.name = name, .kinds = {k0, k1, k2}};
  clang.clang_visitChildren(clang.clang_getTranslationUnitCursor(tu), find_visitor, &l);
  *out = l.found;
  return l.is_found;
}

static bool is_pointer(CXType t) {
  return t.kind == TYPE_POINTER || t.kind == TYPE_ARRAY || t.kind == TYPE_OPEN_ARRAY;
}

static CXType pointee(CXType t) {
  CXType p =
      t.kind == TYPE_POINTER ? clang.clang_getPointeeType(t) : clang.clang_getArrayElementType(t);
  return clang.clang_getCanonicalType(p);
}

/* Kinds 3..20 are the integer types, signed from 13 on. */
static bool is_integer(CXType t) {
  return (t.kind >= 3 && t.kind <= 20) || t.kind == TYPE_ENUM;
}
static bool is_signed(CXType t) {
  return t.kind >= 13 && t.kind <= 20;
}

/* Why the types are not interchangeable in a call, or NULL. */
static const char *differ(CXType a, CXType b) {
  a = clang.clang_getCanonicalType(a);
  b = clang.clang_getCanonicalType(b);
  if (is_pointer(a) && is_pointer(b)) {
    CXType pa = pointee(a), pb = pointee(b);
    if (clang.clang_isConstQualifiedType(pa) != clang.clang_isConstQualifiedType(pb))
      return "one points to const";
    if (pa.kind == TYPE_VOID || pb.kind == TYPE_VOID)
      return NULL; /* opaque handles of ours */
    if (pa.kind == TYPE_RECORD && pb.kind == TYPE_RECORD) {
      long long sa = clang.clang_Type_getSizeOf(pa), sb = clang.clang_Type_getSizeOf(pb);
      return sa > 0 && sa != sb ? "they point to structs of different sizes" : NULL;
    }
    return differ(pa, pb) ? "they point to different types" : NULL;
  }
  if (is_integer(a) && is_integer(b)) {
    if (clang.clang_Type_getSizeOf(a) != clang.clang_Type_getSizeOf(b))
      return "integers of different sizes";
    bool plain = a.kind != TYPE_ENUM && b.kind != TYPE_ENUM;
    return plain && is_signed(a) != is_signed(b) ? "one is unsigned" : NULL;
  }
  if (a.kind != b.kind)
    return "different kinds of type";
  if (a.kind == TYPE_RECORD && clang.clang_Type_getSizeOf(a) != clang.clang_Type_getSizeOf(b))
    return "structs of different sizes";
  return NULL;
}

static void complain(const char *what, const char *part, const char *why) {
  printf("%s: %s: %s\n", what, part, why);
  fx.wrong++;
}

/* The function type of a member of one of our tables. */
struct member {
  const char *name;
  CXType type;
  bool found;
};
static int member_visitor(CXCursor c, void *user) {
  struct member *m = user;
  CXString s = clang.clang_getCursorSpelling(c);
  if (strcmp(clang.clang_getCString(s), m->name) == 0) {
    m->type =
        clang.clang_getPointeeType(clang.clang_getCanonicalType(clang.clang_getCursorType(c)));
    m->found = true;
  }
  clang.clang_disposeString(s);
  return m->found ? 0 : 1;
}

static void check_function(const char *table, const char *member, const char *symbol) {
  CXCursor t, f;
  assert_true(find(fx.ours, table, CURSOR_STRUCT, -1, -1, &t));
  struct member m = {.name = member};
  clang.clang_Type_visitFields(clang.clang_getCursorType(t), member_visitor, &m);
  assert_true(m.found);
  if (!find(fx.theirs, symbol, CURSOR_FUNCTION, -1, -1, &f)) {
    complain(symbol, "declaration", "not in the headers");
    return;
  }
  fx.compared++;
  CXType theirs = clang.clang_getCanonicalType(clang.clang_getCursorType(f));
  CXType ours = clang.clang_getCanonicalType(m.type);
  const char *why = differ(clang.clang_getResultType(ours), clang.clang_getResultType(theirs));
  if (why)
    complain(symbol, "result", why);
  int n = clang.clang_getNumArgTypes(ours);
  if (n != clang.clang_getNumArgTypes(theirs)) {
    complain(symbol, "parameters", "different numbers of them");
    return;
  }
  for (int i = 0; i < n; i++) {
    why = differ(clang.clang_getArgType(ours, (unsigned)i),
                 clang.clang_getArgType(theirs, (unsigned)i));
    char part[32];
    snprintf(part, sizeof part, "parameter %d", i + 1);
    if (why)
      complain(symbol, part, why);
  }
}

struct fields {
  const char *name;
  CXType theirs;
  CXType ours;
};

/* Size of the field `name` of `t`: found again by visiting. */
struct field_size {
  const char *name;
  long long size;
};
static int size_visitor(CXCursor c, void *user) {
  struct field_size *f = user;
  CXString s = clang.clang_getCursorSpelling(c);
  if (strcmp(clang.clang_getCString(s), f->name) == 0)
    f->size = clang.clang_Type_getSizeOf(clang.clang_getCursorType(c));
  clang.clang_disposeString(s);
  return 1;
}

static int compare_field(CXCursor c, void *user) {
  struct fields *x = user;
  CXString s = clang.clang_getCursorSpelling(c);
  const char *name = clang.clang_getCString(s);
  if (strncmp(name, "align_as", 8) != 0) { /* ours alone: gives a union its alignment */
    struct field_size size = {name, -1};
    clang.clang_Type_visitFields(x->theirs, size_visitor, &size);
    long long ours = clang.clang_Type_getOffsetOf(x->ours, name);
    long long theirs = clang.clang_Type_getOffsetOf(x->theirs, name);
    if (theirs < 0 || ours != theirs)
      complain(x->name, name, "not there, or at another offset");
    else if (size.size != clang.clang_Type_getSizeOf(clang.clang_getCursorType(c)))
      complain(x->name, name, "another size");
    fx.compared++;
  }
  clang.clang_disposeString(s);
  return 1;
}

static void check_struct(const char *name) {
  CXCursor a, b;
  assert_true(find(fx.ours, name, CURSOR_TYPEDEF, -1, -1, &a));
  if (!find(fx.theirs, name, CURSOR_TYPEDEF, -1, -1, &b)) {
    complain(name, "type", "not in the headers");
    return;
  }
  CXType ours = clang.clang_getCanonicalType(clang.clang_getCursorType(a));
  CXType theirs = clang.clang_getCanonicalType(clang.clang_getCursorType(b));
  if (clang.clang_Type_getSizeOf(ours) != clang.clang_Type_getSizeOf(theirs))
    complain(name, "size", "different");
  struct fields x = {name, theirs, ours};
  clang.clang_Type_visitFields(ours, compare_field, &x);
}

static void check_value(const char *name, long long value) {
  CXCursor c;
  if (!find(fx.theirs, arena_printf(&fx.mem.arena, "kiln_%s", name), CURSOR_ENUM_CONSTANT, -1, -1,
            &c)) {
    complain(name, "value", "not found");
    return;
  }
  fx.compared++;
  if (clang.clang_getEnumConstantDeclValue(c) != value)
    complain(name, "value",
             arena_printf(&fx.mem.arena, "is %lld in the headers, %lld here",
                          clang.clang_getEnumConstantDeclValue(c), value));
}

static int setup(void **state) {
  (void)state;
  memset(&fx, 0, sizeof fx);
  help_arena_init(&fx.mem);
  fx.include = find_headers();
  if (!fx.include)
    skip_reason = "no CUDA headers (cuda.h, nvrtc.h) in the usual places";
  else if (!open_clang())
    skip_reason = "libclang not found";
  if (skip_reason)
    return 0;
  fx.index = clang.clang_createIndex(0, 0);
  fx.ours = parse("kiln_ours.c",
                  "#include \"runtime/abi_cuda.h\"\n#include \"runtime/abi_nvrtc.h\"\n"
                  "#include \"runtime/abi_cublas.h\"\n#include \"runtime/abi_nvml.h\"\n",
                  fx.include);
  fx.has_cublas = exists(fx.include, "cublas_v2.h") && exists(fx.include, "cublasLt.h");
  fx.has_nvml = exists(fx.include, "nvml.h");
  struct strbuf b = {.arena = &fx.mem.arena};
  sb_puts(&b, "#include <stdbool.h>\n#include <cuda.h>\n#include <nvrtc.h>\n");
  if (fx.has_cublas)
    sb_puts(&b, "#include <cublas_v2.h>\n#include <cublasLt.h>\n");
  if (fx.has_nvml)
    sb_puts(&b, "#include <nvml.h>\n");
  sb_puts(&b, "enum {\n");
#define X(name, value) sb_puts(&b, "  kiln_" #name " = " #name ",\n");
  CUDA_VALUES(X)
  NVRTC_VALUES(X)
  if (fx.has_cublas) {
    CUBLAS_VALUES(X)
    CUBLASLT_VALUES(X)
  }
  if (fx.has_nvml) {
    NVML_VALUES(X)
  }
#undef X
  sb_puts(&b, "};\n");
  fx.theirs = parse("kiln_theirs.c", b.s, fx.include);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  if (fx.ours)
    clang.clang_disposeTranslationUnit(fx.ours);
  if (fx.theirs)
    clang.clang_disposeTranslationUnit(fx.theirs);
  if (fx.index)
    clang.clang_disposeIndex(fx.index);
  arena_free(&fx.mem.arena);
  return 0;
}

static void need(bool there, const char *what) {
  fx.wrong = fx.compared = 0;
  if (!skip_reason && there)
    return;
  printf("SKIP: %s: %s\n", what, skip_reason ? skip_reason : "its header is not installed");
  skip();
}

static void conclude(const char *what, int least) {
  printf("%s: %d facts compared with %s\n", what, fx.compared, fx.include);
  assert_int_equal(fx.wrong, 0);
  assert_true(fx.compared >= least);
}

#define X_CUDA(member, symbol, result, params)  check_function("cuda_api", #member, #symbol);
#define X_NVRTC(member, symbol, result, params) check_function("nvrtc_api", #member, #symbol);
#define X_BLAS(member, symbol, result, params)  check_function("cublas_api", #member, #symbol);
#define X_LT(member, symbol, result, params)    check_function("cublaslt_api", #member, #symbol);
#define X_NVML(member, symbol, result, params)  check_function("nvml_api", #member, #symbol);
#define X_STRUCT(name)                          check_struct(#name);
#define X_VALUE(name, value)                    check_value(#name, value);

static void test_cuda(void **state) {
  (void)state;
  need(true, "CUDA driver");
  CUDA_FUNCTIONS(X_CUDA)
  CUDA_STRUCTS(X_STRUCT)
  CUDA_VALUES(X_VALUE)
  conclude("CUDA driver", 100);
}

static void test_nvrtc(void **state) {
  (void)state;
  need(true, "NVRTC");
  NVRTC_FUNCTIONS(X_NVRTC)
  NVRTC_VALUES(X_VALUE)
  conclude("NVRTC", 15);
}

static void test_cublas(void **state) {
  (void)state;
  need(fx.has_cublas, "cuBLAS");
  CUBLAS_FUNCTIONS(X_BLAS)
  CUBLASLT_FUNCTIONS(X_LT)
  CUBLASLT_STRUCTS(X_STRUCT)
  CUBLAS_VALUES(X_VALUE)
  CUBLASLT_VALUES(X_VALUE)
  conclude("cuBLAS", 45);
}

static void test_nvml(void **state) {
  (void)state;
  need(fx.has_nvml, "NVML");
  NVML_FUNCTIONS(X_NVML)
  NVML_VALUES(X_VALUE)
  conclude("NVML", 14);
}

/* The comparison can fail: a function against another one's declaration, a wrong value. */
static void test_comparison_can_fail(void **state) {
  (void)state;
  need(true, "self-test of the comparison");
  check_function("cuda_api", "cuMemAlloc", "cuMemcpyHtoD_v2"); /* another number of parameters */
  assert_int_equal(fx.wrong, 1);
  check_function("cuda_api", "cuMemcpyHtoD", "cuMemcpyDtoH_v2"); /* other types: two parameters */
  assert_int_equal(fx.wrong, 3);
  check_function("nvrtc_api", "nvrtcGetErrorString", "nvrtcGetNumSupportedArchs");
  assert_true(fx.wrong >= 5);
  int before = fx.wrong;
  check_value("CUDA_ERROR_NOT_READY", 601);
  check_function("cuda_api", "cuInit", "cuNoSuchFunction");
  assert_int_equal(fx.wrong, before + 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_cuda),
      cmocka_unit_test(test_nvrtc),
      cmocka_unit_test(test_cublas),
      cmocka_unit_test(test_nvml),
      cmocka_unit_test(test_comparison_can_fail),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
