"""Decodes frames as compression/FORMAT.md describes them; see envelope.py."""

import re

from envelope import ABSENT, BLOCK, DENSE, SPARSE, Bits, Gaps, open_envelope, planes, require

SPARSE_SPEC = re.compile(r"topk\(k=(\d+),block=4096\)\|levels\(bits=(\d)\)\|gaps\|zstd\(\d+\)")
DENSE_SPEC = re.compile(r"dense\(bits=24\)\|zstd\(\d+\)")


def level(byte):
    return 0 if byte == 0 else (16 + byte % 16) << byte // 16


def blocks(size):
    """First value and number of values of each block."""
    return [(at, min(BLOCK, size - at)) for at in range(0, size, BLOCK)]


def kept(k, values):
    return max(1, (k * values + 2048) // 4096)


def packed_bound(raw):
    """Most bytes of a packed stream: two lengths, and its raw bytes as they are."""
    return 20 + raw


class Sparse:
    """The streams of sparse tensors."""

    def __init__(self, k, bits, sizes):
        self.k, self.bits = k, bits
        self.classes = 1 << (bits - 1)
        all_blocks = [values for size in sizes for _, values in blocks(size)]
        total = sum(kept(k, values) for values in all_blocks)
        self.most = (
            len(all_blocks) * self.classes,
            sum(kept(k, values) + values // 255 for values in all_blocks),
            (total * bits + 7) // 8,
        )

    def check(self, form, value_bits, k, exponent):
        require(form == SPARSE, "not of the sparse form")
        require((value_bits, k) == (self.bits, self.k), "other settings than the spec's")
        require(-149 <= exponent <= 108, "exponent out of range")

    def decode(self, tensors, streams):
        """tensors: (size, form, exponent) each."""
        levels, gaps, values = streams
        where, coded, at = Gaps(gaps), Bits(values), 0
        decoded = []
        for size, form, exponent in tensors:
            positions, mantissas = [], []
            for begin, count in blocks(size) if form == SPARSE else []:
                sent = levels[at : at + self.classes]
                require(len(sent) == self.classes, "levels end")
                at += self.classes
                if not any(sent):
                    continue
                for position in where.positions(kept(self.k, count), count):
                    code = coded.take(self.bits)
                    positions.append(begin + position)
                    mantissas.append(level(sent[code >> 1]) * (-1 if code & 1 else 1))
            decoded.append((form, exponent, 20 if form else 0, positions, mantissas))
        require(at == len(levels), "levels left over")
        require(where.reader.left() == 0, "gaps left over")
        coded.finish()
        return decoded


class Dense:
    """The streams of dense tensors."""

    def __init__(self, sizes):
        self.most = (0, 0, 3 * sum(sizes))

    def check(self, form, value_bits, k, exponent):
        require(form == DENSE, "not of the dense form")
        require((value_bits, k) == (24, 0), "other settings than the spec's")
        require(-149 <= exponent <= 105, "exponent out of range")

    def decode(self, tensors, streams):
        values, at = streams[2], 0
        decoded = []
        for size, form, exponent in tensors:
            mantissas = []
            if form == DENSE:
                mantissas = planes(values[at : at + 3 * size], size, 3)
                require(min(mantissas) > -(1 << 23), "a mantissa of over 23 bits")
                at += 3 * size
            decoded.append((form, exponent, 24 if form else 0, [], mantissas))
        require(at == len(values), "values left over")
        return decoded


def decode_frame(data, spec, sizes, digest):
    """The tensors as (form, exponent, mantissa bits, positions, mantissas)."""
    sparse = SPARSE_SPEC.fullmatch(spec)
    if not sparse and not DENSE_SPEC.fullmatch(spec):
        raise ValueError(spec)
    codec = Sparse(int(sparse[1]), int(sparse[2]), sizes) if sparse else Dense(sizes)
    bound = 28 + len(spec) + packed_bound(6 * len(sizes)) + sum(packed_bound(most) for most in codec.most)
    require(len(data) <= bound, f"{len(data)} bytes, at most {bound} fit the layout")
    reader = open_envelope(data, b"ISFR", sizes, digest)
    require(reader.take(reader.number(2)) == spec.encode(), "another codec spec")
    table = reader.packed("table", 6 * len(sizes))
    streams = [reader.packed(name, most) for name, most in zip(("level", "gap", "value"), codec.most)]
    require(reader.left() == 0, "bytes left over")
    require(len(table) == 6 * len(sizes), "table of another length")

    tensors = []
    for i, size in enumerate(sizes):
        form, bits, k_low, k_high, e_low, e_high = table[i :: len(sizes)]
        exponent = int.from_bytes((e_low, e_high), "little", signed=True)
        if form == ABSENT:
            require(bits == k_low == k_high == exponent == 0, "an absent tensor with settings")
        else:
            codec.check(form, bits, k_low | k_high << 8, exponent)
        tensors.append((size, form, exponent))
    return codec.decode(tensors, streams)


def frame_text(tensors):
    """As testdata's .txt files have it."""
    lines = []
    for form, exponent, bits, positions, mantissas in tensors:
        lines.append(f"form {form} exponent {exponent} bits {bits}")
        lines.append("  positions " + " ".join(map(str, positions)))
        lines.append("  mantissas " + " ".join(map(str, mantissas)))
    return "".join(line + "\n" for line in lines)
