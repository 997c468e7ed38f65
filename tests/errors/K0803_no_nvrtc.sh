KILN_NVRTC=/opt/cuda-1.0 kiln check K1001_wrong.lua
