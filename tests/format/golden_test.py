"""Golden frames and updates read by a second decoder, written from compression/FORMAT.md alone."""

import pathlib
import unittest

from carried import carried_text, decode_carried
from envelope import Damaged, Malformed
from frames import decode_frame, frame_text
from updates import decode_update, update_text
from xxh3 import xxh3_64

FOLDER = pathlib.Path("compression/testdata")
DIGEST = 0x0123456789ABCDEF
SPARSE_SIZES, DENSE_SIZES = [4200, 3, 4096], [20, 3]
ROW_SIZES, ROW_LENGTHS = [32768, 3, 4200], [64, 0, 42]
GROUP_SIZES = [4096 + 139, 3, 1]
GROUP_SPECS = {  # by what is in the name; the first that is
    "int8_stored": "dense(bits=8,group=4096)|zstd(0)",
    "int8": "dense(bits=8,group=64)|zstd(1)",
    "int4_hadamard": "dense(bits=4,group=16,hadamard=7)|zstd(1)",
    "int4": "dense(bits=4,group=64)|zstd(1)",
}
SUFFIXES = (".frame", ".update", ".carried")
DAMAGED = {"empty", "truncated", "bit_flip"}  # the other bad ones are malformed


def settings(name):
    """Codec spec and layout of a file; golden_cases.cc has the same."""
    for key, spec in GROUP_SPECS.items():
        if key in name:
            return spec, GROUP_SIZES
    if "rows" in name:
        return "topk(k=16,block=4096)|levels(bits=1)|gaps|zstd(1)", ROW_SIZES
    if "mask" in name:
        return f"mask(k=64,block=4096,seed=7)|levels(bits={3 if 'three' in name else 1})|zstd(1)", SPARSE_SIZES
    if "dense" in name:
        return "dense(bits=24)|zstd(1)", DENSE_SIZES
    if "auto" in name:
        return "topk(k=16,block=4096,share=energy)|levels(bits=auto)|gaps|zstd(1)", SPARSE_SIZES
    bits = {"good_two_bits": 2, "good_three_bits": 3}.get(name.split(".")[0], 1)
    return f"topk(k=16,block=4096)|levels(bits={bits})|gaps|zstd({3 if bits == 3 else 1})", SPARSE_SIZES


def carried_settings(name):
    """Codec spec and count of a file of carried values; golden_carried.cc has the same."""
    spec = "fp32|zstd(1)"
    for form, its_spec in (("bf16", "bf16"), ("fp8", "fp8(group=16)"), ("nf4", "nf4(group=16)")):
        if form in name:
            spec = its_spec + "|zstd(1)"
    return spec, 0 if "nothing" in name else 75


def decoded_text(path):
    if path.suffix == ".carried":
        return carried_text(decode_carried(path.read_bytes(), *carried_settings(path.name)))
    spec, sizes = settings(path.name)
    data = path.read_bytes()
    if path.suffix == ".frame":
        row_lengths = ROW_LENGTHS if sizes is ROW_SIZES else None
        return frame_text(decode_frame(data, spec, sizes, DIGEST, row_lengths))
    return update_text(*decode_update(data, sizes, DIGEST))


def files(quality):
    return sorted(p for p in FOLDER.iterdir() if p.name.startswith(quality) and p.suffix in SUFFIXES)


class GoldenTest(unittest.TestCase):
    def test_good_files_decode_to_the_same_numbers(self):
        good = files("good_")
        self.assertGreaterEqual(len(good), 11)
        for path in good:
            with self.subTest(path.name):
                self.assertEqual(decoded_text(path), path.with_name(path.name + ".txt").read_text())

    def test_bad_files_are_refused_as_damaged_or_as_malformed(self):
        bad = files("bad_")
        self.assertGreaterEqual(len(bad), 40)
        for path in bad:
            kind = Damaged if path.stem.removeprefix("bad_") in DAMAGED else Malformed
            with self.subTest(path.name), self.assertRaises(kind):
                decoded_text(path)

    def test_checksums_of_every_length_class_are_those_of_the_algorithm(self):
        # Sealed files of 38 to 1,300 bytes check lengths up to 240 and beyond; here one with several blocks of stripes.
        data = bytes(i * 7 % 256 for i in range(5000))
        self.assertEqual(xxh3_64(data), LONG_CHECKSUM)


LONG_CHECKSUM = 0x6ABE8BE5ABCB2760  # by the library itself


if __name__ == "__main__":
    unittest.main(verbosity=2)
