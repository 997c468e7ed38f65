-- argument declarations
return kernel {
  name = "k",
  const = { T = {bf16, f32}, D = {64, 128}, flag = {true} },
  tune = { BM = {64} },
  args = {
    tensor("A", "U", "M"), tensor("B", "bf16", "M"), tensor("C", f32), tensor("D1", f32, "M", "M", "M", "M", "M", "M"),
    tensor("E", index, "M"), tensor("F", f32, "M +"), tensor("G", f32, "Q/128"), tensor("H", f32, "(M+1)/2"),
    tensor("I", f32, -1), tensor("J", f32, true), tensor("K1", 3, "M"), tensor("a b", f32, "M"), tensor(3),
    scalar("s", f32, "M"), tensor("M", f32, "M"), tensor("N", f32, "BM"), tensor("O", f32, "flag"),
    tensor("A", f32, "M"), 7, tensor("P", "D", "M"), tensor("R", f32, 1.5),
  },
  grid = function() return 1 end,
  body = function() end,
}
--[====[ expect
wrong_arguments.lua:7:54: error: tensor `C` needs 1 to 5 dims, got 0 [K0401]
wrong_arguments.lua:7:72: error: tensor `D1` needs 1 to 5 dims, got 6 [K0401]
wrong_arguments.lua:8:5: error: tensor `E`: index is no type of memory; use s32 or s64 [K0401]
wrong_arguments.lua:8:30: error: tensor: dim 0 of `F`, "M +": expected an expression; a dim is a name, a number or an expression like "K/128" [K0401]
wrong_arguments.lua:8:82: error: tensor: dim 0 of `H`, "(M+1)/2": `/` divides one dim exactly, as in "K/128"; otherwise use // or cdiv(a, b) [K0401]
wrong_arguments.lua:9:5: error: tensor: dim 0 of `I` is -1; it must be an integer of at least 0 [K0401]
wrong_arguments.lua:9:27: error: tensor: dim 0 of `J` is true; a dim is a name ("M"), a number or an expression ("K/128") [K0401]
wrong_arguments.lua:9:51: error: tensor `K1` needs a dtype second (bf16, or "T" for a const T), got number 3 [K0401]
wrong_arguments.lua:9:73: error: tensor needs a name first, as tensor("X", ...); got "a b" [K0401]
wrong_arguments.lua:9:98: error: tensor needs a name first, as tensor("X", ...); got number 3 [K0401]
wrong_arguments.lua:9:98: error: tensor `?` needs a dtype second (bf16, or "T" for a const T), got nil [K0401]
wrong_arguments.lua:9:98: error: tensor `?` needs 1 to 5 dims, got 0 [K0401]
wrong_arguments.lua:10:5: error: scalar takes 2 arguments, got 3: scalar(name: string, dtype: dtype|string): arg [K0503]
wrong_arguments.lua:11:54: error: tensor: dim 0 of `R` is 1.5; it must be an integer of at least 0 [K0401]
wrong_arguments.lua:11:5: error: kernel `k` has two args `A` [K0401]
wrong_arguments.lua:2:8: error: arg 19 of kernel `k` is number 7; args are tensor(...), scalar(...), out(...), inout(...) or optional(...) [K0401]
wrong_arguments.lua:7:5: error: dtype of `A`: "U" is no const of dtypes; there are: T [K0401]
wrong_arguments.lua:7:28: error: dtype of `B`: write bf16 without quotes, or name a const [K0401]
wrong_arguments.lua:11:31: error: dtype of `P`: "D" is no const of dtypes; there are: T [K0401]
wrong_arguments.lua:2:8: error: kernel: dim "Q" appears only in expressions: no argument tells its value [K0401]
wrong_arguments.lua:2:8: error: kernel: dim "BM" is the name of a tune list; a dim may share its name with a const of integers only [K0401]
wrong_arguments.lua:2:8: error: kernel: dim "flag" is the name of a const of another kind; a dim may share its name with a const of integers only [K0401]
wrong_arguments.lua:10:28: error: `M` names an arg and a dim [K0401]
]====]
