"""Decodes updates as compression/FORMAT.md describes them; see envelope.py."""

import itertools
import math

from envelope import ABSENT, BLOCK, DENSE, SPARSE, Bits, Gaps, Reader, open_envelope, planes, require

PEERS, CONTRIBUTORS = range(2)
SUM_LIMIT = 1 << 52
MOST_SITES = 1024


FAR = 255  # the symbol that says that a name goes on


class RangeCode:
    """Symbols out of the range code of the sum names."""

    def __init__(self, frequencies, data):
        self.tables = []
        reader = Reader(frequencies)
        while reader.left():
            self.tables.append(self.owners(reader))
        require(len(self.tables) <= 17, "too many tables of frequencies")
        self.words = Reader(data)
        self.states = [self.words.number(4) for _ in range(8)] if data else [1 << 16] * 8
        require(min(self.states) >= 1 << 16, "a state too low")
        self.taken = 0

    @staticmethod
    def owners(reader):
        """Of each of the 4096 parts: symbol, its frequency, its first part."""
        symbols = reader.varint()
        require(symbols <= 256, "too many symbols")
        frequencies = [reader.varint() for _ in range(symbols)]
        require(not symbols or (sum(frequencies) == 4096 and frequencies[-1] > 0), "frequencies that do not sum to 4096")
        parts = []
        for symbol, frequency in enumerate(frequencies):
            parts += [(symbol, frequency, len(parts))] * frequency
        return parts

    def take(self, table):
        require(table < len(self.tables) and self.tables[table], "a table that codes nothing")
        coder = self.taken % 8
        self.taken += 1
        x = self.states[coder]
        symbol, frequency, first = self.tables[table][x % 4096]
        x = frequency * (x // 4096) + x % 4096 - first
        self.states[coder] = x if x >= 1 << 16 else x << 16 | self.words.number(2)
        return symbol

    def finish(self):
        require(self.words.left() == 0 and all(x == 1 << 16 for x in self.states), "names left over")


class Sums:
    """Sums and weights of sparse tensors, block after block, out of their streams."""

    def __init__(self, tables, sizes, entries, literals, weights, frequencies, names, signs):
        self.tables, self.sizes, self.entries = Reader(tables), Reader(sizes), Reader(entries)
        self.literals, self.weights = Reader(literals), Reader(weights)
        self.names, self.signs = RangeCode(frequencies, names), Bits(signs)

    def dictionary(self, limit, most_weight):
        """The next block's entries: (magnitude, weight)."""
        entries, spelled, last = [], [], 0
        for _ in range(self.sizes.varint()):
            code = self.entries.number(1)
            if code:
                j = math.isqrt(code - 1)
                i, odd = divmod(code - 1 - j * j, 2)
                require(j < min(len(spelled), 16), "a pair of literals that are not there")
                (a, a_weight), (b, b_weight) = spelled[i], spelled[j]
                entry = (abs(a - b) if odd else a + b, a_weight + b_weight)
            else:
                coded = self.literals.varint()
                last += -(coded + 1) // 2 if coded % 2 else coded // 2
                entry = (last, self.weights.varint() if most_weight else 0)
                require(not most_weight or entry[1] >= 1, "a position nobody sent")
                spelled.append(entry)
            require(0 <= entry[0] < limit, "a sum beyond its limit")
            require(entry[1] <= most_weight, "a weight beyond the total")
            entries.append(entry)
        return entries

    def name(self, table):
        symbol = self.names.take(table)
        name = symbol
        while symbol == FAR and name < BLOCK:
            symbol = self.names.take(0)
            name += symbol
        return name

    def block(self, count, limit, most_weight):
        """(sum, weight) of `count` positions."""
        entries = self.dictionary(limit, most_weight)
        require(1 <= len(entries) <= count, "a dictionary of no or too many entries")
        table = 0
        if len(entries) > 1:
            table = self.tables.number(1)
            require(table != 0, "names by table 0")
        found = []
        for _ in range(count):
            name = self.name(table) if table else 0
            require(name < len(entries), "a name that means nothing")
            magnitude, weight = entries[name]
            found.append((-magnitude if magnitude and self.signs.take(1) else magnitude, weight))
        return found

    def finish(self):
        streams = (self.tables, self.sizes, self.entries, self.literals, self.weights)
        require(all(stream.left() == 0 for stream in streams), "sums left over")
        self.names.finish()
        self.signs.finish()


def bitmap_positions(data, count, values):
    positions = [8 * at + bit for at, byte in enumerate(data) for bit in range(8) if byte >> bit & 1]
    require(len(positions) == count and (not count or positions[-1] < values), "a bitmap of other positions")
    return positions


class Row:
    """What the table says of a tensor."""

    def __init__(self, table, size):
        self.form = table.number(1)
        self.is_bitmap = self.form == 0x80 | SPARSE
        if self.is_bitmap:
            self.form = SPARSE
        require(self.form <= DENSE, "an unknown form")
        self.exponent = table.number(2, signed=True)
        require(-149 <= self.exponent <= 108, "exponent out of range")
        self.zeros = table.number(1)
        require(self.zeros < 52, "too many common zero bits")
        positions = table.varint()
        require(positions <= (size if self.form == SPARSE else 0), "more positions than values")
        self.count = {ABSENT: 0, SPARSE: positions, DENSE: size}[self.form]
        self.size = size
        left_out = table.varint()
        require(2 * left_out <= table.left(), "sites left out cut short")
        self.left_out = [table.number(2) for _ in range(left_out)]
        ascending = all(a < b for a, b in zip(self.left_out, self.left_out[1:]))
        require(ascending and all(site < MOST_SITES for site in self.left_out), "sites left out not ascending")


def read_streams(reader, rows, averaging):
    sparse = sum(row.count for row in rows if row.form == SPARSE)
    dense = sum(row.count for row in rows if row.form == DENSE)
    gapped = sum(row.count for row in rows if row.form == SPARSE and not row.is_bitmap)
    total = sum(row.size for row in rows)
    blocks = sum(min(row.count, -(-row.size // BLOCK)) for row in rows if row.form == SPARSE)
    bitmap_bytes = sum(-(-row.size // 8) for row in rows if row.is_bitmap)
    has_weights = averaging == CONTRIBUTORS

    def exactly(name, most):
        data = reader.packed(name, most)
        require(len(data) == most, f"{name} stream of another length")
        return data

    gaps = reader.packed("gap", gapped + total // 255 if gapped else 0)
    bitmaps = exactly("bitmap", bitmap_bytes)
    sums = Sums(
        reader.packed("sum table", blocks),
        reader.packed("dictionary size", 2 * blocks),
        reader.packed("dictionary entry", sparse),
        reader.packed("literal", 8 * sparse),
        reader.packed("literal weight", 3 * sparse if has_weights else 0),
        reader.packed("frequency", 17 * 2 * 257 if sparse else 0),
        reader.packed("sum name", reader.left() if sparse else 0),
        reader.packed("sum sign", (sparse + 7) // 8),
    )
    dense_sums = exactly("dense sum", 7 * dense)
    dense_weights = exactly("dense weight", 3 * dense if has_weights else 0)
    require(reader.left() == 0, "bytes left over")
    return Gaps(gaps), Reader(bitmaps), sums, Reader(dense_sums), Reader(dense_weights)


def dense_tensor(row, dense_sums, dense_weights, most_weight):
    limit = SUM_LIMIT >> row.zeros
    sums = planes(dense_sums.take(7 * row.count), row.count, 7)
    require(all(-limit < s < limit for s in sums), "a sum beyond its limit")
    weights = []
    if most_weight:
        data = dense_weights.take(3 * row.count)
        weights = [int.from_bytes(data[i :: row.count], "little") for i in range(row.count)]
        require(max(weights) <= most_weight, "a weight beyond the total")
    return [], [s << row.zeros for s in sums], weights


def sparse_tensor(row, gaps, bitmaps, sums, most_weight):
    """Positions, sums and weights."""
    if row.is_bitmap:
        positions = bitmap_positions(bitmaps.take(-(-row.size // 8)), row.count, row.size)
    else:
        positions = gaps.positions(row.count, row.size)
    found = []
    for _, of_block in itertools.groupby(positions, lambda position: position // BLOCK):
        found += sums.block(len(list(of_block)), SUM_LIMIT >> row.zeros, most_weight)
    return positions, [s << row.zeros for s, _ in found], [w for _, w in found] if most_weight else []


def decode_update(data, sizes, digest):
    """(averaging, total weight, tensors as (form, exponent, left out, positions, sums, weights))."""
    reader = open_envelope(data, b"ISUP", sizes, digest)
    averaging, total_weight = reader.number(1), reader.varint()
    require(averaging in (PEERS, CONTRIBUTORS), "an unknown averaging")
    require(1 <= total_weight <= 256 * MOST_SITES, "an impossible total weight")
    table = Reader(reader.packed("table", len(sizes) * (24 + 2 * MOST_SITES)))
    rows = [Row(table, size) for size in sizes]
    require(table.left() == 0, "table left over")
    gaps, bitmaps, sums, dense_sums, dense_weights = read_streams(reader, rows, averaging)
    most_weight = total_weight if averaging == CONTRIBUTORS else 0
    tensors = []
    for row in rows:
        if row.form == DENSE:
            lists = dense_tensor(row, dense_sums, dense_weights, most_weight)
        else:
            lists = sparse_tensor(row, gaps, bitmaps, sums, most_weight)
        tensors.append((row.form, row.exponent, row.left_out, *lists))
    require(gaps.reader.left() == 0, "gaps left over")
    sums.finish()
    return averaging, total_weight, tensors


def update_text(averaging, total_weight, tensors):
    """As testdata's .txt files have it."""
    lines = [f"averaging {averaging} weight {total_weight}"]
    for form, exponent, *lists in tensors:
        lines.append(f"form {form} exponent {exponent}")
        for name, values in zip(("left out", "positions", "sums", "weights"), lists):
            lines.append(f"  {name} " + " ".join(map(str, values)))
    return "".join(line + "\n" for line in lines)
