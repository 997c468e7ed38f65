-- How things are written: numerals, strings, comments, names.
local T = require "mod.show"
local show = T.show

local numerals = {0, 3, 345, 0xff, 0XBEBADA, 3.0, 3.1416, 314.16e-2, 0.31416E1, 0x0.1E, 0xA23p-4,
  0X1.921FB54442D18P+1, .5, 5., 1e10, 1E+2, 1e-2,
  0x7fffffffffffffff, 0xffffffffffffffff, 0x1ffffffffffffffff, 9223372036854775807,
    9223372036854775808, 1e308 * 10, 0x.8, 0x8., 0xep1, 0xe+1, 3e0, 00012}
for i = 1, #numerals do print(i, show(numerals[i]), numerals[i]) end

local strings = {"", '', "a'b", 'a"b', "\a\b\f\n\r\t\v\\\"\'", "\65\066\0067", "\x41\x7F\xff",
  "\u{41}\u{e9}\u{20AC}\u{10FFFF}\u{7FFFFFFF}", "a\z
   b\z

   c", "line one\
line two", [[long]], [[
first newline dropped]], [==[with ]] and ]=] inside]==], [[a\nb]], "\0after", "tab	in it",
  "-- no comment", [=[
]=], "\z", "\u{0}"}
for i = 1, #strings do print(i, #strings[i], show(strings[i])) end

print(1 --[[ in the middle ]] + --[==[ longer ]] ]==] 2) -- end of line
--[[ several
lines ]] print "after"
---[[ not a long comment
print "still here"
--]]
print(#[[

x]])
print(#"\
", '\'', "\"")
local and_, _, __x, Name1, name1, end_ = 1, 2, 3, 4, 5, 6
print(and_, _, __x, Name1, name1, end_)
local s = "chain" print(s:upper():lower():len(), ("x"):rep(3), #"abc")
;;; print("semicolons"); ;
do end do ; end
local f = function(t) return type(t) end
print(f{}, f"s", f[[s]], f'x', (f{1}), f
  {2})
print(({10, 20, 30})[2], ("abc"):sub(2, 2), (function() return "called" end)(), #{n = 1, 5, 6})
