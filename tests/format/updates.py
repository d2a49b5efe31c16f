"""Decodes updates as compression/FORMAT.md describes them; see envelope.py."""

from envelope import ABSENT, BLOCK, DENSE, SPARSE, Bits, Gaps, Reader, open_envelope, planes, require

PEERS, CONTRIBUTORS = range(2)
SUM_LIMIT = 1 << 52
MOST_SITES = 1024


class Sums:
    """Sums, or weights, out of their three streams."""

    def __init__(self, names, literals, signs):
        self.names, self.literals, self.signs = Reader(names), Reader(literals), Bits(signs)
        self.known = []

    def begin_block(self):
        self.known = []

    def take(self, limit):
        name = self.names.number(1)
        if name < len(self.known):
            magnitude = self.known[name]
        else:
            require(name == len(self.known), "a name that means nothing")
            magnitude = self.literals.varint()
            require(magnitude < limit, "a sum beyond its limit")
            if len(self.known) < 255:
                self.known.append(magnitude)
        return -magnitude if self.signs.take(1) else magnitude

    def finish(self):
        require(self.names.left() == 0 and self.literals.left() == 0, "sums left over")
        self.signs.finish()


class Row:
    """What the table says of a tensor."""

    def __init__(self, table, size):
        self.form = table.number(1)
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
    total = sum(row.size for row in rows)
    gaps = reader.packed("gap", sparse + total // 255 if sparse else 0)

    def sums(name, count, literal):
        streams = []
        for part, most in (("name", count), ("literal", literal * count), ("sign", (count + 7) // 8)):
            streams.append(reader.packed(f"{name} {part}", most))
            require(part == "literal" or len(streams[-1]) == most, f"{name} {part} stream of another length")
        return Sums(*streams)

    sparse_sums = sums("sum", sparse, 8)
    dense_sums = reader.packed("dense sum", 7 * dense)
    require(len(dense_sums) == 7 * dense, "dense sum stream of another length")
    weights = sums("weight", sparse + dense if averaging == CONTRIBUTORS else 0, 3)
    require(reader.left() == 0, "bytes left over")
    return Gaps(gaps), sparse_sums, Reader(dense_sums), weights


def tensor_sums(row, gaps, sparse_sums, dense_sums):
    """Positions and sums of one tensor."""
    limit = SUM_LIMIT >> row.zeros
    if row.form == DENSE:
        sums = planes(dense_sums.take(7 * row.count), row.count, 7)
        require(all(-limit < s < limit for s in sums), "a sum beyond its limit")
        return [], [s << row.zeros for s in sums]
    positions = gaps.positions(row.count, row.size)
    sums, block = [], None
    for position in positions:
        if position // BLOCK != block:
            block = position // BLOCK
            sparse_sums.begin_block()
        sums.append(sparse_sums.take(limit) << row.zeros)
    return positions, sums


def tensor_weights(row, weights, total_weight):
    found = []
    for i in range(row.count):
        if i % BLOCK == 0:
            weights.begin_block()
        found.append(weights.take(total_weight + 1))
        require(found[-1] >= (1 if row.form == SPARSE else 0), "a position nobody sent")
    return found


def decode_update(data, sizes, digest):
    """(averaging, total weight, tensors as (form, exponent, left out, positions, sums, weights))."""
    reader = open_envelope(data, b"ISUP", sizes, digest)
    averaging, total_weight = reader.number(1), reader.varint()
    require(averaging in (PEERS, CONTRIBUTORS), "an unknown averaging")
    require(1 <= total_weight <= 256 * MOST_SITES, "an impossible total weight")
    table = Reader(reader.packed("table", len(sizes) * (24 + 2 * MOST_SITES)))
    rows = [Row(table, size) for size in sizes]
    require(table.left() == 0, "table left over")
    gaps, sparse_sums, dense_sums, weights = read_streams(reader, rows, averaging)
    tensors = []
    for row in rows:
        positions, sums = tensor_sums(row, gaps, sparse_sums, dense_sums)
        sent = tensor_weights(row, weights, total_weight) if averaging == CONTRIBUTORS else []
        tensors.append((row.form, row.exponent, row.left_out, positions, sums, sent))
    require(gaps.reader.left() == 0, "gaps left over")
    sparse_sums.finish()
    weights.finish()
    return averaging, total_weight, tensors


def update_text(averaging, total_weight, tensors):
    """As testdata's .txt files have it."""
    lines = [f"averaging {averaging} weight {total_weight}"]
    for form, exponent, *lists in tensors:
        lines.append(f"form {form} exponent {exponent}")
        for name, values in zip(("left out", "positions", "sums", "weights"), lists):
            lines.append(f"  {name} " + " ".join(map(str, values)))
    return "".join(line + "\n" for line in lines)
