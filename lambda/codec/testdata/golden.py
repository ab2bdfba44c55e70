"""Writes the golden frames of version 1, by FORMAT.md and without the Go code.

Needs Python's standard library and the zstd command:  python3 golden.py v1
"""

import struct
import subprocess
import sys

POLY = 0x82F63B78
TABLE = []
for i in range(256):
    for _ in range(8):
        i = i >> 1 ^ (POLY if i & 1 else 0)
    TABLE.append(i)

FP32, BF16, FP16, INT32, BYTES = range(5)
NONE, S2, ZSTD = 1, 2, 3
SHUFFLE, SPARSE = 1, 2
SPECIAL = {1: 0x80000000, 2: 0x7FA00001, 4: 0x7F800000, 5: 1, 7: 0x477FEFFF, 8: 0xFF800000}


def crc32c(data):
    crc = 0xFFFFFFFF
    for b in data:
        crc = crc >> 8 ^ TABLE[(crc ^ b) & 255]
    return crc ^ 0xFFFFFFFF


def bits(i):
    """Value i of the test tensor as the bits of an fp32."""
    if i in SPECIAL:
        return SPECIAL[i]
    if i % 3 == 0:
        return 0
    x = i * 2654435761 % 2**32 >> 8
    return struct.unpack("<I", struct.pack("<f", (x - 2**23) / 2**20))[0]


def wire(i, dtype):
    b = bits(i)
    if dtype == FP32:
        return struct.pack("<I", b)
    nan = b & 0x7FFFFFFF > 0x7F800000
    if dtype == BF16:
        low, up = b & 0xFFFF, b >> 16
        if nan:
            return struct.pack("<H", up | 0x40)
        return struct.pack("<H", up + (low > 0x8000 or low == 0x8000 and up & 1 == 1))
    if nan:
        return struct.pack("<H", b >> 16 & 0x8000 | 0x7E00 | b >> 13 & 0x1FF)
    return struct.pack("<e", struct.unpack("<f", struct.pack("<I", b))[0])


def planes(values):
    return [bytes(v[p] for v in values) for p in range(len(values[0]))]


def frame(name, dtype, codec, filt, total, first, rows, cols, values, squeeze=None):
    raw = b"".join(values)
    parts = []
    if filt & SPARSE:
        bitmap = bytearray((len(values) + 7) // 8)
        for i, v in enumerate(values):
            if any(v):
                bitmap[i // 8] |= 1 << i % 8
        parts.append(bytes(bitmap))
        values = [v for v in values if any(v)]
    parts += planes(values) if filt & SHUFFLE else [b"".join(values)]
    if codec == ZSTD:
        parts = [subprocess.run(["zstd", "-q", "-c", "--no-check"], input=p, capture_output=True, check=True).stdout for p in parts]
    if codec == S2:
        parts = [squeeze]
    payload = b"".join(parts)
    head = b"DYTF" + bytes([1, dtype, codec, filt])
    head += struct.pack("<6Q", total, first, rows, cols, len(raw), len(payload)) + struct.pack("<I", crc32c(raw))
    assert len(head) == 60 and len(payload) <= len(raw), (name, len(payload), len(raw))
    with open(f"{sys.argv[1]}/{name}.frame", "wb") as f:
        f.write(head + struct.pack("<I", crc32c(payload + head)) + payload)


def floats(name, dtype, codec, filt, first=0, rows=40):
    values = [wire(i, dtype) for i in range(21 * first, 21 * (first + rows))]
    frame(name, dtype, codec, filt, 40, first, rows, 21, values)


floats("fp32-none", FP32, NONE, 0)
floats("fp32-none-sparse", FP32, NONE, SPARSE)
floats("fp32-none-sparse-shuffle", FP32, NONE, SPARSE | SHUFFLE)
floats("fp32-zstd-shuffle", FP32, ZSTD, SHUFFLE)
floats("fp32-zstd-sparse-shuffle", FP32, ZSTD, SPARSE | SHUFFLE)
floats("bf16-none", BF16, NONE, 0)
floats("bf16-zstd-sparse", BF16, ZSTD, SPARSE)
floats("fp16-none-sparse-shuffle", FP16, NONE, SPARSE | SHUFFLE)
floats("chunk", FP32, NONE, 0, first=10, rows=15)
frame("int32-none", INT32, NONE, 0, 50, 0, 50, 1, [struct.pack("<i", i * i - 100) for i in range(50)])
# 100 bytes in s2: a literal of 4 bytes, then copies of 64 and 32 bytes from 4 bytes back.
s2 = bytes([100, 3 << 2, 0, 1, 2, 3, 63 << 2 | 2, 4, 0, 31 << 2 | 2, 4, 0])
frame("bytes-s2", BYTES, S2, 0, 100, 0, 100, 1, [bytes([i % 4]) for i in range(100)], s2)
