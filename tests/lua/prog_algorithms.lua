-- Small algorithms: queens, primes, permutations, heaps, shortest paths, life, big numbers.
local function queens(n)
  local cols, up, down, count, first = {}, {}, {}, 0, nil
  local function place(r, line)
    if r > n then
      count = count + 1
      first = first or table.concat(line, " ")
      return
    end
    for c = 1, n do
      if not (cols[c] or up[r + c] or down[r - c]) then
        cols[c], up[r + c], down[r - c] = true, true, true
        line[r] = c
        place(r + 1, line)
        line[r] = nil
        cols[c], up[r + c], down[r - c] = nil, nil, nil
      end
    end
  end
  place(1, {})
  return count, first
end
for n = 1, 7 do print(n, queens(n)) end

local function sieve(n)
  local composite, primes = {}, {}
  for i = 2, n do
    if not composite[i] then
      primes[#primes + 1] = i
      for j = i * i, n, i do composite[j] = true end
    end
  end
  return primes
end
local primes = sieve(500)
print(#primes, primes[#primes], table.concat(primes, " ", 1, 20))

local function permutations(list)
  local out = {}
  local function go(k)
    if k == 0 then out[#out + 1] = table.concat(list, "") return end
    for i = 1, k do
      list[i], list[k] = list[k], list[i]
      go(k - 1)
      list[i], list[k] = list[k], list[i]
    end
  end
  go(#list)
  return out
end
local perms = permutations {"a", "b", "c", "d"}
table.sort(perms)
print(#perms, perms[1], perms[24], perms[12])

-- A binary heap, and Dijkstra with it.
local Heap = {}
Heap.__index = Heap
Heap.__len = function(h) return #h.items end
function Heap.new(before) return setmetatable({items = {}, before = before or function(a, b)
  return a < b end}, Heap) end
function Heap:push(v)
  local t, i = self.items, #self.items + 1
  t[i] = v
  while i > 1 do
    local p = i // 2
    if not self.before(t[i], t[p]) then break end
    t[i], t[p] = t[p], t[i]
    i = p
  end
end
function Heap:pop()
  local t = self.items
  local top, n = t[1], #t
  t[1] = t[n]
  t[n] = nil
  n = n - 1
  local i = 1
  while true do
    local c = 2 * i
    if c > n then break end
    if c < n and self.before(t[c + 1], t[c]) then c = c + 1 end
    if not self.before(t[c], t[i]) then break end
    t[i], t[c] = t[c], t[i]
    i = c
  end
  return top
end
local h, x, drained = Heap.new(), 12345, {}
for _ = 1, 60 do
  x = (x * 1103515245 + 12345) % 2147483648
  h:push(x % 1000)
end
while #h > 0 do drained[#drained + 1] = h:pop() end
print(table.concat(drained, " "))

local function dijkstra(graph, from)
  local dist, queue = {[from] = 0}, Heap.new(function(a, b) return a[1] < b[1] end)
  queue:push {0, from}
  while #queue > 0 do
    local d, node = table.unpack(queue:pop())
    if d == dist[node] then
      for next_node, w in pairs(graph[node] or {}) do
        local nd = d + w
        if nd < (dist[next_node] or math.huge) then
          dist[next_node] = nd
          queue:push {nd, next_node}
        end
      end
    end
  end
  return dist
end
local graph = {a = {b = 7, c = 9, f = 14}, b = {c = 10, d = 15}, c = {d = 11, f = 2}, d = {e = 6},
  f = {e = 9}}
local dist = dijkstra(graph, "a")
for _, n in ipairs {"a", "b", "c", "d", "e", "f"} do print(n, dist[n]) end

-- Life on a torus.
local function life(rows, steps)
  local h, w = #rows, #rows[1]
  local grid = {}
  for r = 1, h do
    grid[r] = {}
    for c = 1, w do grid[r][c] = rows[r]:sub(c, c) == "#" and 1 or 0 end
  end
  for _ = 1, steps do
    local next_grid = {}
    for r = 1, h do
      next_grid[r] = {}
      for c = 1, w do
        local n = -grid[r][c]
        for dr = -1, 1 do for dc = -1, 1 do n = n + grid[(r + dr - 1) % h + 1][(c + dc - 1) % w + 1]
          end end
        next_grid[r][c] = (n == 3 or (n == 2 and grid[r][c] == 1)) and 1 or 0
      end
    end
    grid = next_grid
  end
  for r = 1, h do
    for c = 1, w do grid[r][c] = grid[r][c] == 1 and "#" or "." end
    grid[r] = table.concat(grid[r])
  end
  return table.concat(grid, "\n")
end
print(life({".#......", "..#.....", "###.....", "........", "........", "........", "........",
  "........"}, 12))

-- Numbers of any size.
local Big = {}
Big.__index = Big
local BASE = 10000000
local function big(v)
  if getmetatable(v) == Big then return v end
  local s, out = tostring(v), {}
  while #s > 0 do
    out[#out + 1] = tonumber(s:sub(-7), 10)
    s = s:sub(1, -8)
  end
  return setmetatable(out, Big)
end
function Big.__add(a, b)
  a, b = big(a), big(b)
  local out, carry = {}, 0
  for i = 1, math.max(#a, #b) do
    local s = (a[i] or 0) + (b[i] or 0) + carry
    out[i], carry = s % BASE, s // BASE
  end
  if carry > 0 then out[#out + 1] = carry end
  return setmetatable(out, Big)
end
function Big.__mul(a, b)
  a, b = big(a), big(b)
  local out = {}
  for i = 1, #a + #b do out[i] = 0 end
  for i = 1, #a do
    local carry = 0
    for j = 1, #b do
      local s = out[i + j - 1] + a[i] * b[j] + carry
      out[i + j - 1], carry = s % BASE, s // BASE
    end
    out[i + #b] = out[i + #b] + carry
  end
  while #out > 1 and out[#out] == 0 do out[#out] = nil end
  return setmetatable(out, Big)
end
function Big.__tostring(a)
  local out = {tostring(a[#a])}
  for i = #a - 1, 1, -1 do out[#out + 1] = ("%07d"):format(a[i]) end
  return table.concat(out)
end
Big.__eq = function(a, b) return tostring(a) == tostring(b) end
local f = big(1)
for i = 2, 60 do f = f * i end
print(tostring(f))
local fa, fb = big(0), big(1)
for _ = 1, 200 do fa, fb = fb, fa + fb end
print(tostring(fa), big("99999999999999") + 1 == big("100000000000000"))

-- Determinants over fractions.
local function gcd(a, b) while b ~= 0 do a, b = b, a % b end return a end
local Frac = {}
Frac.__index = Frac
local function frac(n, d)
  d = d or 1
  local g = gcd(n, d)
  if d // g < 0 then g = -g end
  return setmetatable({n = n // g, d = d // g}, Frac)
end
Frac.__sub = function(a, b) return frac(a.n * b.d - b.n * a.d, a.d * b.d) end
Frac.__mul = function(a, b) return frac(a.n * b.n, a.d * b.d) end
Frac.__div = function(a, b) return frac(a.n * b.d, a.d * b.n) end
Frac.__unm = function(a) return frac(-a.n, a.d) end
Frac.__tostring = function(a) return a.d == 1 and tostring(a.n) or a.n .. "/" .. a.d end
local function det(m)
  local n, d = #m, frac(1)
  for i = 1, n do
    local p = i
    while p <= n and m[p][i].n == 0 do p = p + 1 end
    if p > n then return frac(0) end
    if p ~= i then m[p], m[i], d = m[i], m[p], -d end
    d = d * m[i][i]
    for r = i + 1, n do
      local q = m[r][i] / m[i][i]
      for c = i, n do m[r][c] = m[r][c] - q * m[i][c] end
    end
  end
  return d
end
local hilbert = {}
for r = 1, 5 do
  hilbert[r] = {}
  for c = 1, 5 do hilbert[r][c] = frac(1, r + c - 1) end
end
print(tostring(det(hilbert)))

-- Collatz, Roman numerals, Gray codes, bits.
local longest, at = 0, 0
for n = 1, 300 do
  local k, steps = n, 0
  while k ~= 1 do
    k = k % 2 == 0 and k // 2 or 3 * k + 1
    steps = steps + 1
  end
  if steps > longest then longest, at = steps, n end
end
print(longest, at)
local function roman(n)
  local out = ""
  for _, p in ipairs {{1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"}, {90, "XC"},
    {50, "L"}, {40, "XL"}, {10, "X"}, {9, "IX"}, {5, "V"}, {4, "IV"}, {1, "I"}} do
    while n >= p[1] do out, n = out .. p[2], n - p[1] end
  end
  return out
end
print(roman(1994), roman(2026), roman(3999), roman(4))
local gray = {}
for i = 0, 15 do gray[#gray + 1] = i ~ (i >> 1) end
print(table.concat(gray, " "))
local function popcount(n) local c = 0 while n ~= 0 do n, c = n & (n - 1), c + 1 end return c end
print(popcount(0), popcount(-1), popcount(0x0f0f), popcount(math.mininteger))
-- A hash with 32-bit arithmetic.
local function fnv(s) local h = 0x811c9dc5 for i = 1, #s do h = ((h ~ s:byte(i)) * 0x01000193)
  & 0xffffffff end return h end
print(("%08x %08x %08x"):format(fnv "", fnv "a", fnv "the quick brown fox"))
local function crc32(s)
  local c = 0xffffffff
  for i = 1, #s do
    c = c ~ s:byte(i)
    for _ = 1, 8 do c = (c >> 1) ~ (0xedb88320 & -(c & 1)) end
  end
  return ~c & 0xffffffff
end
print(("%08x"):format(crc32 "123456789"))
