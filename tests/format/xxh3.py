"""XXH3 with 64 bits and seed 0, for the lengths a sealed frame or update can have: over 16 bytes."""

MASK = (1 << 64) - 1
PRIME32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
PRIME64 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
STRIPE = 64

# The algorithm's default secret.
SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)


def word(data, at, size=8):
    return int.from_bytes(data[at : at + size], "little")


def fold(a, b):
    product = a * b
    return (product & MASK) ^ (product >> 64)


def avalanche(h):
    h ^= h >> 37
    h = h * 0x165667919E3779F9 & MASK
    return h ^ h >> 32


def mix16(data, at, secret_at):
    return fold(word(data, at) ^ word(SECRET, secret_at), word(data, at + 8) ^ word(SECRET, secret_at + 8))


def up_to_128(data):
    size = len(data)
    acc = size * PRIME64[0]
    for step in range((size - 1) // 32 + 1):
        acc += mix16(data, 16 * step, 32 * step)
        acc += mix16(data, size - 16 * (step + 1), 32 * step + 16)
    return avalanche(acc & MASK)


def up_to_240(data):
    acc = len(data) * PRIME64[0]
    for i in range(8):
        acc += mix16(data, 16 * i, 16 * i)
    acc = avalanche(acc & MASK)
    for i in range(8, len(data) // 16):
        acc += mix16(data, 16 * i, 16 * (i - 8) + 3)
    acc += mix16(data, len(data) - 16, 136 - 17)
    return avalanche(acc & MASK)


def accumulate(acc, data, at, secret_at):
    for i in range(8):
        value = word(data, at + 8 * i)
        key = value ^ word(SECRET, secret_at + 8 * i)
        acc[i ^ 1] = (acc[i ^ 1] + value) & MASK
        acc[i] = (acc[i] + (key & 0xFFFFFFFF) * (key >> 32)) & MASK


def scramble(acc):
    for i in range(8):
        acc[i] = (acc[i] ^ acc[i] >> 47 ^ word(SECRET, len(SECRET) - STRIPE + 8 * i)) * PRIME32[0] & MASK


def long(data):
    acc = [PRIME32[2], PRIME64[0], PRIME64[1], PRIME64[2], PRIME64[3], PRIME32[1], PRIME64[4], PRIME32[0]]
    stripes = (len(SECRET) - STRIPE) // 8  # before the accumulators are scrambled
    for n in range((len(data) - 1) // STRIPE):
        accumulate(acc, data, n * STRIPE, 8 * (n % stripes))
        if n % stripes == stripes - 1:
            scramble(acc)
    accumulate(acc, data, len(data) - STRIPE, len(SECRET) - STRIPE - 7)
    result = len(data) * PRIME64[0]
    for i in range(4):
        result += fold(acc[2 * i] ^ word(SECRET, 11 + 16 * i), acc[2 * i + 1] ^ word(SECRET, 19 + 16 * i))
    return avalanche(result & MASK)


def xxh3_64(data):
    if len(data) <= 16:
        raise ValueError("nothing sealed is that short")
    if len(data) <= 128:
        return up_to_128(data)
    return up_to_240(data) if len(data) <= 240 else long(data)
