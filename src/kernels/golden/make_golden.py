#!/usr/bin/env python3
"""Makes golden.bin: blocks of every quantised type and their values by the PyPI package `gguf` (0.17 or later).

Usage: make_golden.py OUT
Format, little-endian, per type: u32 gguf id, u32 elements, u32 bytes, the bytes, then the values as f32.
"""
import struct
import sys

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import GGML_QUANT_SIZES, quants

HALVES = {Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2], Type.Q8_0: [0], Type.Q4_K: [0, 2],
          Type.Q5_K: [0, 2], Type.Q6_K: [208], Type.IQ4_NL: [0], Type.IQ4_XS: [0], Type.MXFP4: [], Type.Q2_K: [80, 82],
          Type.Q3_K: [108]}
EXPONENTS = [128, 120, 3, 2, 1, 0, 250, 127]   # bytes of MXFP4: ordinary, small, subnormal, large

rng = np.random.default_rng(20260101)
with open(sys.argv[1], "wb") as out:
    for kind, halves in HALVES.items():
        block, size = GGML_QUANT_SIZES[kind]
        blocks = rng.integers(0, 256, (8, size), dtype=np.uint8)
        for at in halves:  # scales: ordinary, negative, subnormal, zero
            scales = rng.normal(0, 0.05, 8).astype(np.float16)
            scales[6], scales[7] = 3e-7, 0.0
            blocks[:, at:at + 2] = scales.view(np.uint8).reshape(8, 2)
        if kind == Type.MXFP4:
            blocks[:, 0] = EXPONENTS
        values = quants.dequantize(blocks.reshape(-1), kind).astype(np.float32)
        out.write(struct.pack("<III", int(kind), values.size, blocks.size))
        out.write(blocks.tobytes())
        out.write(values.tobytes())
