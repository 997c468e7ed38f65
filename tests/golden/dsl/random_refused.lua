-- random numbers that are refused
local at = iota(1, 8)
local y = random(1)
y = random(1, at, 2, 3)
y = random_normal(1, at, 1)
y = random(at, at)
y = random(f32(1), at)
y = random(1.5, at)
y = random(1, 0.5)
y = random(1, zeros(f32, 4))
y = random(1, at > 0)
y = random(1, at, 4)
y = random(1, at, i)
y = random(1, a.A)
y = random(true, at)
--[====[ expect
random_refused.lua:3:11: error: random takes (seed, counter [, word]), got 1 value [K0503]
random_refused.lua:4:5: error: random takes at most 3 arguments, got 4: random(seed: num, counter: num, word?: integer): value [K0503]
random_refused.lua:5:5: error: random_normal takes 2 arguments, got 3: random_normal(seed: num, counter: num): value [K0503]
random_refused.lua:6:5: error: the seed of random is index(1,8); it must be an integer scalar [K0503]
random_refused.lua:7:5: error: the seed of random is f32; it must be an integer scalar [K0503]
random_refused.lua:8:5: error: the seed of random is number 1.5; it must be an integer scalar [K0503]
random_refused.lua:9:5: error: the counter of random is number 0.5; it must be an integer tile or scalar [K0503]
random_refused.lua:10:5: error: the counter of random is f32(4); it must be an integer tile or scalar [K0503]
random_refused.lua:11:5: error: the counter of random is bool(1,8); it must be an integer tile or scalar [K0503]
random_refused.lua:12:5: error: the word of random is number 4; it must be 0, 1, 2 or 3 [K0503]
random_refused.lua:13:5: error: the word of random is index; it must be 0, 1, 2 or 3 [K0503]
random_refused.lua:14:5: error: random takes tiles and scalars, got tensor A bf16(K); read a tile of it: t:tile(offsets, sizes) [K0503]
random_refused.lua:15:5: error: the seed of random is true; it must be an integer scalar [K0503]
]====]
