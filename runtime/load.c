/* Finds and opens CUDA's libraries and OpenBLAS.
 *
 * For each library the places are tried in one fixed order (see search()); the first file that
 * opens, has all functions and a supported version is taken, and what was passed over on the way is
 * remembered as a remark. A toolkit library whose major version is above the driver's is passed
 * over: what it compiles or launches would not load. Nothing is reported here but by
 * rt_library_need. */
#define _GNU_SOURCE /* dlinfo */
#include "runtime/internal.h"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

struct symbol {
  const char *name;
  size_t offset;
};

#define X(member, symbol, result, params) {#symbol, offsetof(struct TABLE, member)},
#define TABLE                             cuda_api
static const struct symbol cuda_symbols[] = {CUDA_FUNCTIONS(X){NULL, 0}};
#undef TABLE
#define TABLE nvrtc_api
static const struct symbol nvrtc_symbols[] = {NVRTC_FUNCTIONS(X){NULL, 0}};
#undef TABLE
#define TABLE cublas_api
static const struct symbol cublas_symbols[] = {CUBLAS_FUNCTIONS(X){NULL, 0}};
#undef TABLE
#define TABLE cublaslt_api
static const struct symbol cublaslt_symbols[] = {CUBLASLT_FUNCTIONS(X){NULL, 0}};
#undef TABLE
#define TABLE nvml_api
static const struct symbol nvml_symbols[] = {NVML_FUNCTIONS(X){NULL, 0}};
#undef TABLE
#undef X

struct library {
  const char *name;
  const char *sonames[4]; /* newest first */
  const struct symbol *symbols;
  size_t table; /* offset in struct rt_ctx */
  bool toolkit; /* part of the toolkit (versions, wheels), not of the driver */
  enum diag_id id;
  const char *advice;
};

static const struct library libraries[RT_LIB_COUNT] = {
    [RT_LIB_CUDA] = {"CUDA driver",
                     {"libcuda.so.1"},
                     cuda_symbols,
                     offsetof(struct rt_ctx, cuda),
                     false,
                     DIAG_NO_DRIVER,
                     "install NVIDIA's driver; in a container, pass the GPU through"},
    [RT_LIB_NVRTC] = {"NVRTC",
                      {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"},
                      nvrtc_symbols,
                      offsetof(struct rt_ctx, nvrtc),
                      true,
                      DIAG_NO_NVRTC,
                      "install a CUDA toolkit 12.4 to 13.x or its NVRTC package, or set KILN_NVRTC "
                      "to the library"},
    [RT_LIB_CUBLAS] = {"cuBLAS",
                       {"libcublas.so.13", "libcublas.so.12", "libcublas.so"},
                       cublas_symbols,
                       offsetof(struct rt_ctx, cublas),
                       true,
                       DIAG_NO_CUBLAS,
                       "install cuBLAS of a CUDA toolkit 12.x or 13.x, or set CUDA_HOME"},
    [RT_LIB_CUBLASLT] = {"cuBLASLt",
                         {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"},
                         cublaslt_symbols,
                         offsetof(struct rt_ctx, cublaslt),
                         true,
                         DIAG_NO_CUBLAS,
                         "install cuBLAS of a CUDA toolkit 12.x or 13.x, or set CUDA_HOME"},
    [RT_LIB_NVML] = {"NVML",
                     {"libnvidia-ml.so.1"},
                     nvml_symbols,
                     offsetof(struct rt_ctx, nvml),
                     false,
                     DIAG_NO_DRIVER,
                     "it comes with NVIDIA's driver"},
};

/* One search. Runs under a guard of the context's arena. */
struct search {
  struct rt_ctx *ctx;
  enum rt_library lib;
  const struct library *info;
  int driver_major; /* 0: no driver */
  void *handle;
  const char *path;
  struct strbuf remarks;
  uint32_t places;
};

static void remark(struct search *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void remark(struct search *s, const char *fmt, ...) {
  if (s->remarks.n)
    sb_puts(&s->remarks, "; ");
  va_list ap;
  va_start(ap, fmt);
  sb_vprintf(&s->remarks, fmt, ap);
  va_end(ap);
}

/* The file behind a handle; `fallback` if the C library cannot tell. */
static const char *real_path(struct search *s, void *handle, const char *fallback) {
  struct link_map *map = NULL;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name && map->l_name[0])
    return arena_strdup(&s->ctx->arena, map->l_name);
  return arena_strdup(&s->ctx->arena, fallback);
}

static bool fill_table(struct search *s, void *handle, const char **missing) {
  unsigned char *table = (unsigned char *)s->ctx + s->info->table;
  for (const struct symbol *y = s->info->symbols; y->name; y++) {
    void *p = dlsym(handle, y->name);
    if (!p) {
      *missing = y->name;
      return false;
    }
    memcpy(table + y->offset, &p, sizeof p);
  }
  return true;
}

static void read_version(struct search *s, int *major, int *minor) {
  struct rt_ctx *ctx = s->ctx;
  int v = 0;
  *major = *minor = 0;
  switch (s->lib) {
  case RT_LIB_CUDA:
    if (ctx->cuda.cuDriverGetVersion(&v) == CUDA_SUCCESS) {
      *major = v / 1000;
      *minor = v % 1000 / 10;
    }
    break;
  case RT_LIB_NVRTC:
    if (ctx->nvrtc.nvrtcVersion(major, minor) != NVRTC_SUCCESS)
      *major = *minor = 0;
    break;
  case RT_LIB_CUBLASLT:
    v = (int)ctx->cublaslt.cublasLtGetVersion();
    *major = v / 10000;
    *minor = v / 100 % 100;
    break;
  case RT_LIB_CUBLAS: /* tells its version only once it has a GPU: its file name has the major */
    for (const char *p = s->path; (p = strstr(p, ".so.")) != NULL; p += 4)
      *major = atoi(p + 4);
    break;
  case RT_LIB_NVML:
  case RT_LIB_COUNT: break;
  }
}

static bool is_supported(struct search *s, int major, int minor) {
  if (!s->info->toolkit)
    return true;
  if (s->lib == RT_LIB_NVRTC && (major < 12 || (major == 12 && minor < 4) || major > 13)) {
    remark(s, "passed over %s: version %d.%d is not one of 12.4 to 13.x", s->path, major, minor);
    return false;
  }
  if (s->driver_major && major > s->driver_major) {
    remark(s, "passed over %s: version %d needs a newer driver than the installed one (CUDA %d)",
           s->path, major, s->driver_major);
    return false;
  }
  return true;
}

/* Tries one file or plain name. */
static bool try_file(struct search *s, const char *path) {
  s->places++;
  void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  if (!handle) {
    struct stat st;
    const char *why = dlerror();
    if (strchr(path, '/') && stat(path, &st) == 0 && S_ISREG(st.st_mode))
      remark(s, "%s does not load: %s", path, why ? why : "no reason given");
    return false;
  }
  s->path = real_path(s, handle, path);
  const char *missing;
  if (!fill_table(s, handle, &missing)) {
    remark(s, "passed over %s: it has no %s", s->path, missing);
    dlclose(handle);
    return false;
  }
  struct rt_lib *l = &s->ctx->libs[s->lib];
  read_version(s, &l->major, &l->minor);
  if (!is_supported(s, l->major, l->minor)) {
    dlclose(handle);
    return false;
  }
  s->handle = handle;
  l->state = LIB_LOADED;
  l->path = s->path;
  return true;
}

/* Every file that `folder` (which may hold wildcards) / one of the names gives, newest folder
 * first. */
static bool try_folder(struct search *s, const char *folder) {
  for (int i = 0; i < 4 && s->info->sonames[i]; i++) {
    const char *pattern = arena_printf(&s->ctx->arena, "%s/%s", folder, s->info->sonames[i]);
    glob_t found = {0};
    bool ok = false;
    if (glob(pattern, 0, NULL, &found) == 0)
      for (size_t k = found.gl_pathc; k > 0 && !ok; k--) /* sorted: the newest is last */
        ok = try_file(s, found.gl_pathv[k - 1]);
    globfree(&found);
    if (ok)
      return true;
  }
  return false;
}

static bool try_printf(struct search *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static bool try_printf(struct search *s, const char *fmt, ...) {
  char folder[1024];
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(folder, sizeof folder, fmt, ap);
  va_end(ap);
  return n > 0 && (size_t)n < sizeof folder && try_folder(s, folder);
}

static const char *environment(const char *name) {
  const char *v = getenv(name);
  return v && v[0] ? v : NULL;
}

/* A file or a folder named by the user. */
static bool try_named(struct search *s, const char *where, const char *path) {
  struct stat st;
  uint32_t before = s->places;
  if (stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? try_folder(s, path) : try_file(s, path))
    return true;
  if (s->places == before || !s->remarks.n)
    remark(s, "%s names %s, where there is none", where, path);
  return false;
}

static bool search_home(struct search *s, const char *home) {
  return try_printf(s, "%s/lib64", home) || try_printf(s, "%s/lib", home) ||
         try_printf(s, "%s/targets/*-linux/lib", home);
}

/* Folders of NVIDIA's Python wheels under a site-packages folder. */
static bool search_wheels(struct search *s, const char *packages) {
  return try_printf(s, "%s/nvidia/cu1[23]/lib", packages) ||
         try_printf(s, "%s/nvidia/cuda_nvrtc/lib", packages) ||
         try_printf(s, "%s/nvidia/cublas/lib", packages);
}

static bool search_toolkit(struct search *s) {
  const struct rt_options *o = &s->ctx->options;
  if (s->lib == RT_LIB_NVRTC) {
    const char *named = o->nvrtc ? o->nvrtc : environment("KILN_NVRTC");
    if (named) /* that one and no other: keys and results depend on it */
      return try_named(s, o->nvrtc ? "the context" : "KILN_NVRTC", named);
  }
  const char *home = o->cuda_home ? o->cuda_home : environment("CUDA_HOME");
  if (!home)
    home = environment("CUDA_PATH");
  if (home && search_home(s, home))
    return true;
  const char *own = o->private_dir;
  if (own && (try_printf(s, "%s/cuda/lib", own) || try_printf(s, "%s/cuda/lib64", own) ||
              try_printf(s, "%s/lib", own) || search_wheels(s, own)))
    return true;
  for (int i = 0; i < 4 && s->info->sonames[i]; i++)
    if (try_file(s, s->info->sonames[i]))
      return true;
  static const char *const usual[] = {"/usr/local/cuda", "/usr/local/cuda-13*",
                                      "/usr/local/cuda-12*", "/opt/cuda", "/usr"};
  for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
    if (search_home(s, usual[i]))
      return true;
  if (try_folder(s, "/usr/lib/*-linux-gnu"))
    return true;
  const char *env = environment("VIRTUAL_ENV"), *conda = environment("CONDA_PREFIX");
  if (env) {
    const char *packages = arena_printf(&s->ctx->arena, "%s/lib/python3*/site-packages", env);
    if (search_wheels(s, packages))
      return true;
  }
  if (conda && try_printf(s, "%s/lib", conda))
    return true;
  const char *user = environment("HOME");
  if (user &&
      search_wheels(s, arena_printf(&s->ctx->arena, "%s/.local/lib/python3*/site-packages", user)))
    return true;
  return search_wheels(s, "/usr/local/lib/python3*/[ds]i[st][te]-packages") ||
         search_wheels(s, "/usr/lib/python3*/[ds]i[st][te]-packages");
}

static bool search_driver(struct search *s) {
  static const char *const places[] = {"/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib/wsl/lib",
                                       "/usr/local/nvidia/lib64", "/run/opengl-driver/lib"};
  if (try_file(s, s->info->sonames[0]))
    return true;
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
    if (try_folder(s, places[i]))
      return true;
  return false;
}

static void search(void *user) {
  struct search *s = user;
  struct rt_lib *l = &s->ctx->libs[s->lib];
  s->remarks.arena = &s->ctx->arena;
  bool found = s->info->toolkit ? search_toolkit(s) : search_driver(s);
  if (found) {
    l->why = s->remarks.n ? sb_str(&s->remarks) : NULL;
    return;
  }
  l->state = LIB_MISSING;
  l->major = l->minor = 0;
  l->why = arena_printf(&s->ctx->arena, "%s not found: no %s in the usual places%s%s%s; %s",
                        s->info->name, s->info->sonames[0], s->remarks.n ? " (" : "",
                        sb_str(&s->remarks), s->remarks.n ? ")" : "", s->info->advice);
}

static void load(struct rt_ctx *ctx, enum rt_library lib) {
  struct rt_lib *l = &ctx->libs[lib];
  if (l->state != LIB_UNTRIED)
    return;
  struct search s = {.ctx = ctx, .lib = lib, .info = &libraries[lib]};
  if (s.info->toolkit) {
    load(ctx, RT_LIB_CUDA);
    s.driver_major = ctx->libs[RT_LIB_CUDA].major;
  }
  if (!arena_guard(&ctx->arena, search, &s)) {
    l->state = LIB_UNTRIED; /* may be tried again once there is memory */
    l->why = "out of memory while looking for it";
  }
}

struct rt_library_info rt_library_info(struct rt_ctx *ctx, enum rt_library lib) {
  load(ctx, lib);
  const struct rt_lib *l = &ctx->libs[lib];
  return (struct rt_library_info){.name = libraries[lib].name,
                                  .loaded = l->state == LIB_LOADED,
                                  .path = l->path,
                                  .major = l->major,
                                  .minor = l->minor,
                                  .why = l->why};
}

enum rt_status rt_library_need(struct rt_ctx *ctx, enum rt_library lib) {
  load(ctx, lib);
  const struct rt_lib *l = &ctx->libs[lib];
  if (l->state == LIB_LOADED)
    return RT_OK;
  if (l->state == LIB_UNTRIED)
    return rt_no_memory(ctx);
  return rt_fail(ctx, RT_MISSING, libraries[lib].id, "%s", l->why);
}

static void use(struct rt_ctx *ctx, enum rt_library lib, bool there, int major, int minor) {
  ctx->libs[lib] = (struct rt_lib){
      .state = there ? LIB_LOADED : LIB_MISSING,
      .path = there ? "(given)" : NULL,
      .why = there ? NULL : "hidden",
      .major = major,
      .minor = minor,
  };
}

void rt_use_cuda(struct rt_ctx *ctx, const struct cuda_api *api) {
  int version = 0;
  if (api) {
    ctx->cuda = *api;
    api->cuDriverGetVersion(&version);
  }
  use(ctx, RT_LIB_CUDA, api != NULL, version / 1000, version % 1000 / 10);
}

void rt_use_nvrtc(struct rt_ctx *ctx, const struct nvrtc_api *api, int major, int minor) {
  if (api)
    ctx->nvrtc = *api;
  use(ctx, RT_LIB_NVRTC, api != NULL, major, minor);
}

void rt_use_cublas(struct rt_ctx *ctx, const struct cublas_api *api,
                   const struct cublaslt_api *lt) {
  if (api)
    ctx->cublas = *api;
  if (lt)
    ctx->cublaslt = *lt;
  use(ctx, RT_LIB_CUBLAS, api != NULL, 13, 0);
  use(ctx, RT_LIB_CUBLASLT, lt != NULL, 13, 0);
}

void rt_use_nvml(struct rt_ctx *ctx, const struct nvml_api *api) {
  if (api)
    ctx->nvml = *api;
  use(ctx, RT_LIB_NVML, api != NULL, 0, 0);
}

struct host_search {
  struct search s;
  const char *const *names;
};

static void search_host(void *user) {
  struct host_search *h = user;
  static const char *const folders[] = {"", "/usr/lib/*-linux-gnu/",
                                        "/usr/lib/*-linux-gnu/openblas-*/", "/usr/lib64/",
                                        "/usr/local/lib/"};
  for (size_t f = 0; f < sizeof folders / sizeof folders[0]; f++)
    for (int i = 0; h->names[i]; i++) {
      const char *pattern = arena_printf(&h->s.ctx->arena, "%s%s", folders[f], h->names[i]);
      glob_t found = {0};
      if (!folders[f][0]) {
        h->s.handle = dlopen(pattern, RTLD_LAZY | RTLD_LOCAL);
      } else if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t k = 0; k < found.gl_pathc && !h->s.handle; k++)
          h->s.handle = dlopen(found.gl_pathv[k], RTLD_LAZY | RTLD_LOCAL);
      }
      globfree(&found);
      if (h->s.handle) {
        h->s.path = real_path(&h->s, h->s.handle, pattern);
        return;
      }
    }
}

void *rt_open_host_library(struct rt_ctx *ctx, const char *const *names, const char **path) {
  struct host_search h = {.s = {.ctx = ctx}, .names = names};
  if (!arena_guard(&ctx->arena, search_host, &h))
    return NULL;
  *path = h.s.path;
  return h.s.handle;
}
