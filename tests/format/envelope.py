"""What frames and updates have in common, as compression/FORMAT.md says: envelope, varints, packed streams.

Written from that text alone, to show that it is enough. Standard library and a zstd module or command only.
"""

import subprocess

from xxh3 import xxh3_64

BLOCK = 4096
ABSENT, SPARSE, DENSE, ROWS = range(4)


class Damaged(Exception):
    """The bytes were changed on the way (DATA_LOSS)."""


class Malformed(Exception):
    """The bytes were made wrong (INVALID_ARGUMENT)."""


def require(condition, what):
    if not condition:
        raise Malformed(what)


class Reader:
    """Reads bytes front to back."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def left(self):
        return len(self.data) - self.at

    def take(self, count):
        require(count <= self.left(), f"{count} bytes wanted, {self.left()} left")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, size, signed=False):
        return int.from_bytes(self.take(size), "little", signed=signed)

    def varint(self):
        value = 0
        for i in range(10):
            byte = self.number(1)
            value |= (byte & 0x7F) << 7 * i
            if byte < 0x80:
                require(i == 0 or byte != 0, "a varint longer than it need be")
                require(value < 1 << 64, "a varint of over 64 bits")
                return value
        raise Malformed("a varint of over ten bytes")

    def packed(self, name, most):
        """The next packed stream, unpacked; `most` bytes are what it can have."""
        raw, stored = self.varint(), self.varint()
        require(raw <= most, f"{name} stream claims {raw} bytes, at most {most} fit")
        require(stored <= raw, f"{name} stream claims {stored} stored bytes for {raw}")
        packed = self.take(stored)
        if stored == raw:
            return packed
        unpacked = unzstd(packed)
        require(len(unpacked) == raw, f"{name} stream unpacks to {len(unpacked)} bytes, not {raw}")
        return unpacked


def is_one_plain_frame(packed):
    """Magic, a descriptor of 0, a window byte, and blocks of which the last ends the bytes (RFC 8878, 3.1.1)."""
    if packed[:5] != b"\x28\xb5\x2f\xfd\x00":
        return False
    at, is_last = 6, False
    while not is_last and at + 3 <= len(packed):
        head = int.from_bytes(packed[at : at + 3], "little")
        is_last = head & 1 == 1
        at += 3 + (1 if head >> 1 & 3 == 1 else head >> 3)
    return is_last and at == len(packed)


def unzstd(packed):
    require(is_one_plain_frame(packed), "a stream that is not one plain zstd frame")
    try:
        from compression import zstd  # Python 3.14's

        return zstd.decompress(packed)
    except ImportError:
        pass
    done = subprocess.run(["zstd", "-d", "-c", "-q"], input=packed, capture_output=True, check=False)
    require(done.returncode == 0, "a stream that is not zstd")
    return done.stdout


def check_sum(data):
    """A reader of all but the checksum at the end, which is checked."""
    if len(data) < 8:
        raise Damaged(f"{len(data)} bytes are too few")
    if xxh3_64(data[:-8]) != int.from_bytes(data[-8:], "little"):
        raise Damaged("checksum differs")
    return Reader(data[:-8])


def open_envelope(data, magic, sizes, digest):
    """Checks the envelope; a reader of what it holds. `sizes`: values of the layout's tensors."""
    if len(data) < 26:
        raise Damaged(f"{len(data)} bytes are too few")
    reader = check_sum(data)
    require(reader.take(4) == magic, "another magic")
    require(reader.number(2) == 1, "another version")
    tensors = reader.number(4)
    require(reader.number(8) == digest, "another layout")
    require(tensors == len(sizes), "another number of tensors")
    return reader


class Gaps:
    """Positions out of a gap stream."""

    def __init__(self, data):
        self.reader = Reader(data)

    def gap(self):
        total, byte = 0, 255
        while byte == 255:
            byte = self.reader.number(1)
            total += byte
        return total

    def positions(self, count, values):
        """`count` ascending positions below `values`."""
        found = self.positions_or_end(count, values)
        require(len(found) == count, "gaps pass the end")
        return found

    def positions_or_end(self, count, values):
        """`count` ascending positions below `values`, or fewer where a gap leads exactly there."""
        found, at = [], 0
        for _ in range(count):
            at += self.gap()
            require(at <= values, "gaps pass the end")
            if at == values:
                break
            found.append(at)
            at += 1
        return found


class Bits:
    """Small numbers out of a stream without gaps, low bits first."""

    def __init__(self, data):
        self.held = int.from_bytes(data, "little")
        self.left = 8 * len(data)

    def take(self, count):
        require(count <= self.left, "bits end")
        value = self.held & ((1 << count) - 1)
        self.held >>= count
        self.left -= count
        return value

    def finish(self):
        require(self.left < 8 and self.held == 0, "bits left over that are not 0")


def planes(data, count, width):
    """`count` signed numbers of `width` bytes, plane after plane, low bytes first."""
    require(len(data) == count * width, "planes of another length")
    return [
        int.from_bytes(bytes(data[p * count + i] for p in range(width)), "little", signed=True) for i in range(count)
    ]
