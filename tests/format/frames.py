"""Decodes frames as compression/FORMAT.md describes them; see envelope.py."""

import re

from envelope import ABSENT, BLOCK, DENSE, ROWS, SPARSE, Bits, Gaps, Reader, open_envelope, planes, require

SPARSE_SPEC = re.compile(
    r"topk\(k=(\d+),block=4096(,share=energy)?\)\|levels\(bits=(\d|auto)\)\|gaps\|zstd\(\d+\)"
)
MASK_SPEC = re.compile(r"mask\(k=(\d+),block=4096,seed=(\d+)\)\|levels\(bits=(\d)\)\|zstd\(\d+\)")
DENSE_SPEC = re.compile(r"dense\(bits=24\)\|zstd\(\d+\)")
GROUP_SPEC = re.compile(r"dense\(bits=([84]),group=(\d+)(?:,hadamard=(\d+))?\)\|zstd\(\d+\)")


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


class Row:
    """What the table says of a tensor; settings are 0 for an absent one."""

    def __init__(self, size, form=ABSENT, bits=0, k_low=0, k_high=0, e_low=0, e_high=0):
        self.size, self.form, self.bits = size, form, bits
        self.sent_rows = self.row_length = 0  # of the form by rows
        self.k = k_low | k_high << 8
        self.exponent = int.from_bytes((e_low, e_high), "little", signed=True)


class Sparse:
    """The streams of sparse tensors."""

    def __init__(self, k, by_energy, bits, sizes, row_lengths):
        self.bits = (1, 2, 3) if bits == "auto" else (int(bits),)
        fixed = bits != "auto" and not by_energy
        self.k = range(k if fixed else 1, (min(BLOCK, 4 * k) if by_energy else k) + 1)
        all_blocks = [values for size in sizes for _, values in blocks(size)]
        total = sum(kept(self.k[-1], values) for values in all_blocks)
        self.most = (
            sum(kept(self.k[-1], values) + values // 255 for values in all_blocks)
            + sum(n // length + n // length // 255 for n, length in zip(sizes, row_lengths) if length),
            (total * self.bits[-1] + 7) // 8,
            len(all_blocks) << (self.bits[-1] - 1),
        )

    def check(self, row):
        require(row.form in (SPARSE, ROWS), "not of the sparse form")
        if row.form == ROWS:
            require(row.row_length > 0, "rows of a tensor that has none")
            require(1 <= row.sent_rows <= row.size // row.row_length, "more rows than there are")
            require(1 <= row.k <= BLOCK, "k beyond a block")
            of_rows, of_all = row.sent_rows * row.row_length, row.size
            most = [sum(kept(k, n) for _, n in blocks(size)) for k, size in ((row.k, of_rows), (self.k[-1], of_all))]
            require(most[0] <= most[1], "rows keep more than all values may")
        else:
            require(row.k in self.k, "another k than the spec allows")
        require(row.bits in self.bits, "other bits than the spec allows")
        require(-149 <= row.exponent <= 108, "exponent out of range")

    def decode(self, rows, gaps, values, levels):
        where, coded, at = Gaps(gaps), Bits(values), 0
        decoded = []
        for row in rows:
            classes = 1 << (row.bits - 1) if row.bits else 0
            positions, mantissas = [], []
            numbers, size = range(1), row.size if row.form == SPARSE else 0
            if row.form == ROWS:
                numbers = where.positions(row.sent_rows, row.size // row.row_length)
                size = row.sent_rows * row.row_length
            for begin, count in blocks(size):
                sent = levels[at : at + classes]
                require(len(sent) == classes, "levels end")
                at += classes
                if not any(sent):
                    continue
                found = where.positions_or_end(kept(row.k, count), count)
                require(found, "levels without positions")
                for position in found:
                    code = coded.take(row.bits)
                    positions.append(begin + position)
                    mantissas.append(level(sent[code >> 1]) * (-1 if code & 1 else 1))
            length = row.row_length or row.size
            positions = [numbers[p // length] * length + p % length for p in positions]
            decoded.append((SPARSE if row.form else ABSENT, row.exponent, 20 if row.form else 0, positions, mantissas))
        require(at == len(levels), "levels left over")
        require(where.reader.left() == 0, "gaps left over")
        coded.finish()
        return decoded


class Mask:
    """The streams of sparse tensors whose positions a seed says."""

    def __init__(self, k, seed, bits, sizes):
        self.k, self.seed, self.bits = k, seed, bits
        all_blocks = [values for size in sizes for _, values in blocks(size)]
        total = sum(kept(k, values) for values in all_blocks)
        self.most = (0, (total * bits + 7) // 8, len(all_blocks) << (bits - 1))

    def check(self, row):
        require(row.form == SPARSE, "not of the sparse form")
        require((row.bits, row.k) == (self.bits, self.k), "other settings than the spec's")
        require(-149 <= row.exponent <= 108, "exponent out of range")

    def positions(self, tensor, block, values):
        first = lambda state: Generator(state).take()
        numbers = Generator(first(first(self.seed) + tensor) + block)
        taken = set()
        for j in range(values - kept(self.k, values), values):
            position = (numbers.take() >> 32) * (j + 1) >> 32
            taken.add(j if position in taken else position)
        return sorted(taken)

    def decode(self, rows, _gaps, values, levels):
        coded, at, classes = Bits(values), 0, 1 << (self.bits - 1)
        decoded = []
        for tensor, row in enumerate(rows):
            positions, mantissas = [], []
            for begin, count in blocks(row.size) if row.form == SPARSE else []:
                sent = levels[at : at + classes]
                require(len(sent) == classes, "levels end")
                at += classes
                for position in self.positions(tensor, begin // BLOCK, count) if any(sent) else []:
                    code = coded.take(self.bits)
                    positions.append(begin + position)
                    mantissas.append(level(sent[code >> 1]) * (-1 if code & 1 else 1))
            decoded.append((row.form, row.exponent, 20 if row.form else 0, positions, mantissas))
        require(at == len(levels), "levels left over")
        coded.finish()
        return decoded


class Dense:
    """The streams of dense tensors."""

    def __init__(self, sizes):
        self.most = (0, 3 * sum(sizes), 0)

    def check(self, row):
        require(row.form == DENSE, "not of the dense form")
        require((row.bits, row.k) == (24, 0), "other settings than the spec's")
        require(-149 <= row.exponent <= 105, "exponent out of range")

    def decode(self, rows, _gaps, values, _levels):
        at = 0
        decoded = []
        for row in rows:
            mantissas = []
            if row.form == DENSE:
                mantissas = planes(values[at : at + 3 * row.size], row.size, 3)
                require(min(mantissas) > -(1 << 23), "a mantissa of over 23 bits")
                at += 3 * row.size
            decoded.append((row.form, row.exponent, 24 if row.form else 0, [], mantissas))
        require(at == len(values), "values left over")
        return decoded


class Groups:
    """The streams of dense integers in groups."""

    def __init__(self, bits, group, seed, sizes):
        self.bits, self.group, self.seed = bits, group, seed
        self.most_shift = 13 if bits == 8 else 17 if seed is None else 21
        self.most = (
            0,
            sum((size * bits + 7) // 8 for size in sizes),
            sum(-(-n // group) for size in sizes for _, n in self.segments(size)),
        )
        if seed is not None:
            numbers = Generator(seed)
            self.signs = [bit for _ in range(BLOCK // 64) for bit in bits_of(numbers.take())]

    def segments(self, size):
        """First value within the tensor and number of values of each segment; p is log2 of it or 0."""
        for begin, left in blocks(size):
            while left and self.seed is not None and left >= 64:
                values = 1 << (left.bit_length() - 1)
                yield begin, values
                begin, left = begin + values, left - values
            if left:
                yield begin, left

    def log2(self, values):
        return values.bit_length() - 1 if self.seed is not None and values >= 64 else 0

    def check(self, row):
        require(row.form == DENSE, "not of the dense form")
        require((row.bits, row.k) == (self.bits, 0), "other settings than the spec's")
        require(-149 <= row.exponent <= (108 if self.seed is None else 104), "exponent out of range")

    def decode(self, rows, _gaps, values, shifts):
        shift_at, value_at = 0, 0
        decoded = []
        for row in rows:
            mantissas = []
            if row.form == DENSE:
                length = (row.size * self.bits + 7) // 8
                integers = self.integers(values[value_at : value_at + length], row.size)
                value_at += length
                for begin, count in self.segments(row.size):
                    groups = -(-count // self.group)
                    of_groups = shifts[shift_at : shift_at + groups]
                    require(len(of_groups) == groups, "shifts end")
                    require(max(of_groups) + self.log2(count) <= self.most_shift, "a shift is too large")
                    shift_at += groups
                    aligned = [integers[begin + i] << of_groups[i // self.group] for i in range(count)]
                    mantissas += self.inverse(aligned, begin % BLOCK) if self.log2(count) else aligned
            bits = 20 if self.seed is None else 24
            decoded.append((row.form, row.exponent, bits if row.form else 0, [], mantissas))
        require(shift_at == len(shifts) and value_at == len(values), "shifts or values left over")
        return decoded

    def integers(self, data, size):
        require(len(data) == (size * self.bits + 7) // 8, "values end")
        coded = Bits(data)
        half = 1 << (self.bits - 1)
        found = [(coded.take(self.bits) ^ half) - half for _ in range(size)]
        coded.finish()
        require(min(found) > -half, "an integer no encoder writes")
        return found

    def inverse(self, values, first):
        distance = 1
        while distance < len(values):
            for i in range(len(values)):
                if not i & distance:
                    a, b = values[i], values[i + distance]
                    values[i], values[i + distance] = a + b, a - b
            distance *= 2
        return [-v if self.signs[first + i] else v for i, v in enumerate(values)]


class Generator:
    """The numbers that seeds stand for."""

    def __init__(self, state):
        self.state = state

    def take(self):
        mask = (1 << 64) - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & mask
        z = self.state
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & mask
        return z ^ z >> 31


def bits_of(number):
    return [number >> i & 1 for i in range(64)]


def codec_of(spec, sizes, row_lengths):
    """What decodes the streams of a spec."""
    if found := SPARSE_SPEC.fullmatch(spec):
        return Sparse(int(found[1]), bool(found[2]), found[3], sizes, row_lengths)
    if found := MASK_SPEC.fullmatch(spec):
        return Mask(int(found[1]), int(found[2]), int(found[3]), sizes)
    if DENSE_SPEC.fullmatch(spec):
        return Dense(sizes)
    if found := GROUP_SPEC.fullmatch(spec):
        return Groups(int(found[1]), int(found[2]), None if found[3] is None else int(found[3]), sizes)
    raise ValueError(spec)


def read_table(table, sizes, row_lengths):
    """A row for each tensor."""
    bitmap = (len(sizes) + 7) // 8
    require(len(table) >= bitmap, "table of another length")
    bits = int.from_bytes(table[:bitmap], "little")
    require(bits < 1 << len(sizes), "tensors beyond the layout's")
    present = [i for i in range(len(sizes)) if bits >> i & 1]
    end = bitmap + 6 * len(present)
    require(len(table) >= end, "table of another length")
    counts = Reader(table[end:])
    rows = [Row(size) for size in sizes]
    for at, i in enumerate(present):
        rows[i] = Row(sizes[i], *table[bitmap + at : end : len(present)])
        require(rows[i].form in (SPARSE, DENSE, ROWS), "an unknown form")
        if rows[i].form == ROWS:
            rows[i].sent_rows, rows[i].row_length = counts.number(4), row_lengths[i]
    require(counts.left() == 0, "table of another length")
    return rows


def read_pieces(reader, most):
    """The gap stream and the value stream."""
    gaps, values = b"", b""
    while mark := reader.number(1):
        require(mark == 1, "neither another piece nor the last")
        more_gaps = reader.packed("gap", most["gap"] - len(gaps))
        more_values = reader.packed("value", most["value"] - len(values))
        require(more_gaps or more_values, "an empty piece")
        gaps, values = gaps + more_gaps, values + more_values
    return [gaps, values]


def decode_frame(data, spec, sizes, digest, row_lengths=None):
    """The tensors as (form, exponent, mantissa bits, positions, mantissas). Row lengths: 0 without rows."""
    row_lengths = row_lengths or [0] * len(sizes)
    codec = codec_of(spec, sizes, row_lengths)
    table = (len(sizes) + 7) // 8 + 6 * len(sizes) + 4 * sum(length > 0 for length in row_lengths)
    most = dict(zip(("gap", "value", "level"), codec.most), table=table)
    pieces = 1 + (most["gap"] + most["value"]) // 65536
    bound = 29 + len(spec) + 41 * pieces + sum(most.values()) + 2 * packed_bound(0)
    require(len(data) <= bound, f"{len(data)} bytes, at most {bound} fit the layout")
    reader = open_envelope(data, b"ISFR", sizes, digest)
    require(reader.take(reader.number(2)) == spec.encode(), "another codec spec")
    streams = read_pieces(reader, most) + [reader.packed(name, most[name]) for name in ("level", "table")]
    require(reader.left() == 0, "bytes left over")
    rows = read_table(streams.pop(), sizes, row_lengths)
    for row in rows:
        if row.form != ABSENT:
            codec.check(row)
    return codec.decode(rows, *streams)


def frame_text(tensors):
    """As testdata's .txt files have it."""
    lines = []
    for form, exponent, bits, positions, mantissas in tensors:
        lines.append(f"form {form} exponent {exponent} bits {bits}")
        lines.append("  positions " + " ".join(map(str, positions)))
        lines.append("  mantissas " + " ".join(map(str, mantissas)))
    return "".join(line + "\n" for line in lines)
