-- string.pack, unpack, packsize and utf8.
local T = require "mod.show"
local try, rnd = T.try, T.random(31)

local formats = {"b", "B", "h", "H", "i", "I", "l", "L", "j", "J", "T", "f", "d", "n", "i1", "i3",
  "I7", "i16", "i17", "i0", "s", "s1", "s4", "z", "x", "c3",
  "c", "c0", "X", "Xi4", "!", "!4", "!3", "<", ">", "=", " ", "y", "<i4>i4", "!8 b Xj j", "bz",
    "<s2s2", "!4 i1 i4", "i8i1!8i8"}
local values = {0, 1, -1, 127, 128, 255, 256, 300, -129, 65535, 1 << 31, 1 << 40, math.maxinteger,
  math.mininteger, 1.5, 2.0, "abc", "a\0b", "", "12", {}, true}
for _, f in ipairs(formats) do
  print(T.show(f), try(string.packsize, f))
  for _ = 1, 25 do
    local a, b = values[rnd(#values)], values[rnd(#values)]
    local r = try(string.pack, f, a, b)
    print(T.show(a), T.show(b), r)
    local ok, s = pcall(string.pack, f, a, b)
    if ok then print(try(string.unpack, f, s), try(string.unpack, f, s, 2),
      try(string.unpack, f, s .. "zzzz", -3)) end
  end
end
print(try(string.pack), try(string.unpack), try(string.packsize), try(string.unpack, "i4", "abc"),
  try(string.unpack, "z", "abc"), try(string.unpack, "i4", "abcdefgh", 6))
print(try(function() return string.pack("i4", {}) end), try(function() return ("i4"):pack("x") end),
  try(function() return ("i4"):unpack(1) end))

local texts = {"", "abc", "h\u{e9}llo", "\u{20ac}\u{10ffff}", "\xff", "a\x80", "\u{7fffffff}",
  "\xc0\x80", "\xed\xa0\x80", "ab\xe2\x82"}
for _, s in ipairs(texts) do
  print(T.show(s), try(utf8.len, s), try(utf8.codepoint, s, 1, -1))
  for i = -4, 6 do
    print(i, try(utf8.len, s, i), try(utf8.len, s, i, -1, true), try(utf8.codepoint, s, i),
      try(utf8.offset, s, i), try(utf8.offset, s, i, 2), try(utf8.offset, s, 1, i))
  end
  print(try(function() local out = {} for p, c in utf8.codes(s) do out[#out + 1] = p .. ":" .. c end
    return table.concat(out, " ") end))
  print(try(function() local out = {} for p, c in utf8.codes(s, true) do out[#out + 1] = p .. ":"
    .. c end return table.concat(out, " ") end))
  print(try(function() local n = 0 for c in s:gmatch(utf8.charpattern) do n = n + #c end return n
    end))
end
print(try(utf8.char), try(utf8.char, 72, 228, 8364, 0x10ffff), try(utf8.char, -1),
  try(utf8.char, 1 << 31), try(utf8.char, "x"), try(utf8.char, 1 << 30))
print(T.show(utf8.charpattern), try(utf8.len), try(utf8.len, {}), try(utf8.codes),
  try(utf8.codepoint, "abc", 4), try(utf8.offset, "abc", 1, 9))
