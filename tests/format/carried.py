"""Decodes carried values as compression/FORMAT.md describes them; see envelope.py."""

import re
import struct

from envelope import Bits, check_sum, require
from frames import packed_bound

SPEC = re.compile(r"(fp32|bf16|fp8|nf4)(?:\(group=(\d+)\))?\|zstd\(\d+\)")
BITS = {"fp32": 32, "bf16": 16, "fp8": 8, "nf4": 4}
SCALE_BYTES = {"fp32": 0, "bf16": 0, "fp8": 1, "nf4": 2}
NF4 = (
    "-1 -0.696192801 -0.525073051 -0.394917488 -0.284441382 -0.184773430 -0.0910500363 0 "
    "0.0795802996 0.160930201 0.246112302 0.337915242 0.440709829 0.562617004 0.722956836 1"
).split()


def fp32(value):
    """Rounded to a float of 32 bits."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def fp32_of_bits(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def numbers(data, count, width):
    """`count` unsigned numbers of `width` bytes, plane after plane."""
    return [int.from_bytes(bytes(data[p * count + i] for p in range(width)), "little") for i in range(count)]


def e4m3(code):
    require(code & 0x7F != 0x7F, "a NaN of eight bits")
    exponent, mantissa = code >> 3 & 15, code & 7
    magnitude = mantissa * 2.0**-9 if exponent == 0 else (8 + mantissa) * 2.0 ** (exponent - 10)
    return -magnitude if code & 0x80 else magnitude


def decode_fp8(scales, values, group):
    bits = []
    for i, code in enumerate(values):
        scale = scales[i // group]
        require(scale <= 247, "a scale beyond the largest")
        value = e4m3(code) * 2.0 ** (scale - 127) if scale else e4m3(code) * 0.0
        require(abs(value) < 2.0**128, "not finite")
        bits.append(struct.unpack("<I", struct.pack("<f", value))[0])
    return bits


def decode_nf4(scales, values, group, count):
    scales = numbers(scales, len(scales) // 2, 2)
    require(all(scale < 0x7F80 for scale in scales), "a scale that is negative or not finite")
    coded = Bits(values)
    bits = []
    for i in range(count):
        value = fp32(float(NF4[coded.take(4)])) * fp32_of_bits(scales[i // group] << 16)
        bits.append(struct.unpack("<I", struct.pack("<f", value))[0])
    coded.finish()
    return bits


def decode_carried(data, spec, count):
    """The bits of the values, which Python's floats could not keep where they are NaN."""
    found = SPEC.fullmatch(spec)
    form, group = found[1], int(found[2] or 1)
    most_scales = SCALE_BYTES[form] * -(-count // group)
    most_values = (count * BITS[form] + 7) // 8
    bound = 24 + len(spec) + packed_bound(most_scales) + packed_bound(most_values)
    require(len(data) <= bound, f"{len(data)} bytes, at most {bound} fit")
    reader = check_sum(data)
    require(reader.take(4) == b"ISCV", "another magic")
    require(reader.number(2) == 1, "another version")
    require(reader.number(8) == count, "another number of values")
    require(reader.take(reader.number(2)) == spec.encode(), "another codec spec")
    scales, values = reader.packed("scale", most_scales), reader.packed("value", most_values)
    require(len(scales) == most_scales and len(values) == most_values, "streams of other lengths")
    require(reader.left() == 0, "bytes left over")
    if form == "fp8":
        return decode_fp8(scales, values, group)
    if form == "nf4":
        return decode_nf4(scales, values, group, count)
    shift = 32 - BITS[form]
    return [number << shift for number in numbers(values, count, BITS[form] // 8)]


def carried_text(bits):
    """As testdata's .txt files have it."""
    return "".join(f"{b:08x}\n" for b in bits)
