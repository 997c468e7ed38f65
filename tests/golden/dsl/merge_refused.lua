-- merge functions that cannot be: each loop is refused where it starts or in the function
local s, t = f32(0), zeros(f32, 4)
local outside = 0
for k in range(0, 4, 1, {merge = 3}) do end
for k in range(0, 4, 1, {joined = function(p, q) return p end}) do end
for k in range(0, 4, 1, {}) do s = s + 1 end
for k in range(0, 4, {merge = function(p, q) return p end}) do end
for k in range(0, 4, {merge = function(p, q) return p.s end}) do s = s * 2 end
for k in range(0, 4, {merge = function(p, q) return {} end}) do s, t = s * 2, t * 2 end
for k in range(0, 4, {merge = function(p, q) return {s = p.t, t = q.t} end}) do s, t = s * 2, t * 2 end
for k in range(0, 4, {merge = function(p, q) return {s = 1, t = 1} end}) do s, t = s * 2, t * 2 end
for k in range(0, 4, {merge = function(p, q) return {s = p.s, u = 1, extra = 2} end}) do s = s * 2 end
for k in range(0, 4, {merge = function(p, q) outside = 1 return {s = p.s} end}) do s = s * 2 end
for k in range(0, 4, {merge = function(p, q) a.C:store({0}, p.s) return {s = p.s} end}) do s = s * 2 end
for k in range(0, 4, {merge = function(p, q) print(p.s) return {s = p.s} end}) do s = s * 2 end
for k in range(0, 4, {merge = function(p, q)
  if p.s < q.s then return {s = p.s} else return {s = q.s} end
end}) do s = s * 2 end
for k in range(0, 4, {merge = function(p, q) return {s = sum(a.C:tile({0}, {4})) + p.s} end}) do s = s * 2 end
for k in range(0, 4, {merge = function(p, q) return {s = cast(p.s, bf16)} end}) do s = s * 2 end
for k in range(0, 4, {merge = function(p, q) return {s = "x"} end}) do s = s * 2 end
for k in range(0, 4, {merge = function(p, q) return {s = p.s + q.s.x} end}) do s = s * 2 end
local kept
for k in range(0, 4, {merge = function(p, q) kept = p.s return {s = p.s} end}) do s = s * 2 end
for k in range(0, 4, {merge = function(p, q) return {s = p.s} end}) do a.C:store({k}, s) s = s * 2 end
local function grow() s = s * 2 end
do
  local s = f32(1)
  for k in range(0, 4, {merge = function(p, q) return {s = p.s} end}) do s = s + 1 grow() end
end
--[====[ expect
merge_refused.lua:4:10: error: options of range are {merge = function(p, q) return {name = value, ...} end} [K0503]
merge_refused.lua:5:10: error: options of range are {merge = function(p, q) return {name = value, ...} end} [K0503]
merge_refused.lua:6:10: error: options of range are {merge = function(p, q) return {name = value, ...} end} [K0503]
merge_refused.lua:7:1: error: the loop at merge_refused.lua:7:1 has a merge function but carries no local [K0302]
merge_refused.lua:8:1: error: merge gives f32, not a table with the merged values of `s` [K0302]
merge_refused.lua:9:1: error: merge gives no value for `s`, which the loop at merge_refused.lua:9:1 carries [K0302]
merge_refused.lua:9:1: error: merge gives no value for `t`, which the loop at merge_refused.lua:9:1 carries [K0302]
merge_refused.lua:10:1: error: merge gives f32(4) for `s`; the loop at merge_refused.lua:10:1 carries f32 [K0302]
merge_refused.lua:11:1: error: merge gives number 1 for `t`; the loop at merge_refused.lua:11:1 carries f32(4) [K0302]
merge_refused.lua:12:1: error: merge gives `extra`; the loop at merge_refused.lua:12:1 carries `s` [K0302]
merge_refused.lua:13:1: error: a merge function has an effect (changes `outside`): it only computes [K0304]
merge_refused.lua:14:1: error: a merge function has an effect (store): it only computes [K0304]
merge_refused.lua:15:1: error: a merge function has an effect (print): it only computes [K0304]
merge_refused.lua:16:1: error: return value 1 is a table in one branch and a table in the other (if at merge_refused.lua:17:3) [K0303]
merge_refused.lua:19:66: error: `load` in a merge function: it computes from its two arguments, with no loop, branch or memory [K0301]
merge_refused.lua:20:1: error: merge gives bf16 for `s`; the loop at merge_refused.lua:20:1 carries f32 [K0302]
merge_refused.lua:21:1: error: merge gives a string for `s`; the loop at merge_refused.lua:21:1 carries f32 [K0302]
merge_refused.lua:22:68: error: f32 has no `x`; it has T, permute, slice, row, col, reshape, dtype, shape [K0503]
  merge_refused.lua:22:1: called from here
merge_refused.lua:24:1: error: a merge function has an effect (changes `kept`): it only computes [K0304]
merge_refused.lua:25:1: error: the loop at merge_refused.lua:25:1 has a merge function and an effect (store): only what it carries can be merged [K0304]
merge_refused.lua:29:3: error: the loop at merge_refused.lua:29:3 carries two variables called `s`: its merge function cannot tell them apart; rename one [K0302]
]====]
