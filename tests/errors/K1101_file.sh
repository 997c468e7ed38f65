kiln check nowhere.lua
