#!/usr/bin/lua
local a <const>, b <close>, c = 0x1p-3, nil, [==[ long ]] "text" ]==]
local t = {1, 2; x = 3, ["y z"] = '\x41\u{20AC}\z
  \065\n', f = function(self, ...) return ... end}
function t.g.h:m(p) goto done; ::done:: return self.x[p]{}, t:f"s" end
for i = 10, 1, -3 do if i // 2 == 1 then break elseif not (i ~= 3) then a = ~i else b = #t end end
for k, v in pairs(t) do repeat local u = k .. v until u <= v or u >= k and true end
while a < 1 << 3 | 4 & 5 ~ 6 >> 7 do a, t.x = a ^ 2 ^ 3 % 4, -a --[[ c ]] end -- end
return (t), 1e10, .5, 3., 0xA.8, 9223372036854775808, function() end;
