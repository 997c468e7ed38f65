/* What a kernel is timed beside: cuBLAS where its oracle is one product, else a copy by the driver.
 *
 * cuBLAS computes what the kernel does as far as it has it: of the types and with the unit that the
 * kernel's dots ask for (tf32), and with the bias, residual and activation that a request names
 * (`fused`). Its result goes to a buffer of its own. */
#include "api/api.h"

#include <string.h>

static struct rt_tensor transposed(struct rt_tensor t, bool swap) {
  if (swap) {
    int64_t d = t.dim[0], s = t.stride[0];
    t.dim[0] = t.dim[1];
    t.stride[0] = t.stride[1];
    t.dim[1] = d;
    t.stride[1] = s;
  }
  return t;
}

/* ---- what a request wants fused ---- */

static int argument_named(const struct api_problem *p, const char *name) {
  for (uint32_t i = 0; i < p->n_args; i++)
    if (strcmp(p->args[i].name, name) == 0 && api_is_tensor(&p->args[i]))
      return (int)i;
  return -1;
}

static bool read_one(struct kiln_context *ctx, struct api_problem *p, const char *item) {
  static const char *const activations[] = {
      [RT_LT_IDENTITY] = "none", [RT_LT_RELU] = "relu", [RT_LT_GELU_TANH] = "gelu_tanh"};
  const char *eq = strchr(item, '=');
  size_t n = eq ? (size_t)(eq - item) : 0;
  const char *value = eq ? eq + 1 : "";
  if (n == 10 && memcmp(item, "activation", n) == 0) {
    for (int i = 0; i < 3; i++)
      if (strcmp(value, activations[i]) == 0) {
        p->fused.activation = (enum rt_lt_activation)i;
        return true;
      }
    API_ERROR(ctx, USAGE, "--fused activation: expected none, relu or gelu_tanh, got `%s`", value);
    return false;
  }
  bool bias = n == 4 && memcmp(item, "bias", n) == 0;
  if (!bias && !(n == 8 && memcmp(item, "residual", n) == 0)) {
    API_ERROR(ctx, USAGE, "--fused: expected bias=ARG, residual=ARG or activation=NAME, got `%s`",
              item);
    return false;
  }
  int arg = argument_named(p, value);
  uint32_t rank = bias ? 1 : 2;
  if (arg < 0 || p->args[arg].rank != rank) {
    API_ERROR(ctx, USAGE, "--fused %s: `%s` is no argument of this case with %u dim%s",
              bias ? "bias" : "residual", value, rank, rank == 1 ? "" : "s");
    return false;
  }
  *(bias ? &p->fused.bias : &p->fused.residual) = arg;
  return true;
}

bool api_read_fused(struct kiln_context *ctx, const struct kiln_request *req,
                    struct api_problem *p) {
  p->fused = (struct api_fused){.bias = -1, .residual = -1};
  for (uint32_t i = 0; i < req->n_fused; i++)
    if (!read_one(ctx, p, req->fused[i]))
      return false;
  return true;
}

/* ---- cuBLAS ---- */

static void look_for_tf32(void *user, struct ir_module *m, struct ir_op o) {
  const struct ir_attr *prec = ir_get_attr(m, o, IR_ATTR_prec);
  if (ir_op_at(m, o)->opcode == IR_DOT && prec && str_eq(ir_sym(m, prec->s), "tf32"))
    *(bool *)user = true;
}

bool api_peer_product(struct api_peer *peer, struct rt_device *dev, const struct api_problem *p,
                      struct ir_module *tile, const struct rt_arg *args,
                      const struct api_reference *ref) {
  const struct api_matmul *mm = ref->n_matmuls == 1 ? &ref->matmuls[0] : NULL;
  const struct api_arg *c = NULL;
  for (uint32_t i = 0; i < p->n_args && mm; i++)
    if (api_is_written(&p->args[i]) && p->args[i].rank == 2 && p->args[i].dim[0] == mm->m &&
        p->args[i].dim[1] == mm->n)
      c = &p->args[i];
  if (!c || mm->a < 0 || mm->b < 0 || !mm->m || !mm->n || !mm->k)
    return false;
  struct rt_tensor a = transposed(args[mm->a].tensor, mm->a_trans);
  struct rt_tensor b = transposed(args[mm->b].tensor, mm->b_trans);
  struct rt_tensor out = {.dtype = c->dtype, .rank = 2, .dim = {mm->m, mm->n}};
  struct rt_lt_options opt = {.activation = p->fused.activation};
  if (p->fused.bias >= 0)
    opt.bias = args[p->fused.bias].tensor.data;
  if (p->fused.residual >= 0)
    opt.residual = &args[p->fused.residual].tensor;
  ir_walk(tile, tile->body, look_for_tf32, &opt.tf32);
  rt_tensor_contiguous(&out);
  size_t bytes = (size_t)dtype_bytes(c->dtype, mm->m * mm->n);
  peer->name = "cuBLAS";
  if (rt_buffer_new(dev, "cuBLAS result", bytes, &peer->to) != RT_OK)
    return false;
  out.data = rt_buffer_data(peer->to);
  return rt_lt_new(dev, &a, &b, &out, &opt, &peer->plan) == RT_OK &&
         rt_lt_fastest(peer->plan, &peer->algorithm) == RT_OK;
}

/* ---- a copy ---- */

bool api_peer_copy(struct api_peer *peer, struct rt_device *dev, double bytes) {
  peer->name = "copy";
  peer->bytes = (size_t)(bytes / 2);
  return rt_buffer_new(dev, "copied to", peer->bytes, &peer->to) == RT_OK &&
         rt_buffer_new(dev, "copied from", peer->bytes, &peer->from) == RT_OK &&
         rt_buffer_fill(peer->from, 0x5a, NULL) == RT_OK;
}

/* ---- both ---- */

enum rt_status api_peer_run(void *user, rt_stream stream, uint32_t round) {
  struct api_peer *peer = user;
  (void)round;
  return peer->plan ? rt_lt_run(peer->plan, peer->algorithm, stream)
                    : rt_buffer_copy(peer->to, peer->from, peer->bytes, stream);
}

void api_peer_free(struct api_peer *peer) {
  rt_lt_free(peer->plan);
  rt_buffer_free(peer->from);
  rt_buffer_free(peer->to);
}
