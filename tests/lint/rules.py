"""The rules, one function each. All take paths relative to the root and the files' texts, so tests need no files."""

import re

import layers
import source

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60
MAX_LONG_FUNCTIONS_FRACTION = 0.03
MAX_PURE_VIRTUALS = 7

CPP = (".h", ".cc", ".cu", ".cuh")
SOURCE = CPP + (".py", ".sh", ".proto", ".bzl")

# What must not appear in code (comments and strings aside): pattern, paths where it may, what to do instead.
BANNED = [
    (r"\b(sleep_for|sleep_until|usleep|nanosleep|SleepFor)\b|(?<![\w.])sleep\s*\(", (), "wait through a Clock"),
    (r"\bstd::chrono\b|<chrono>", (), "absl::Time and absl::Duration"),
    (r"\babsl::Now\s*\(|\bGetCurrentTimeNanos\b|\bgettimeofday\b|\bclock_gettime\b|\btime\s*\(\s*(NULL|nullptr|0)\s*\)",
     ("daemon/base/clock.cc",), "ask the Clock that was handed in"),
    (r"\brandom_device\b|(?<![\w:.])s?rand\s*\(", (), "seeded numbers of daemon/base/random.h"),
    (r"\bstd::(recursive_|shared_|timed_)?mutex\b|<mutex>|<shared_mutex>|\bstd::condition_variable\b", (), "absl::Mutex"),
    (r"\bthrow\b|\bcatch\s*\(", ("daemon/app/command_line.cc",),
     "absl::Status; exceptions are caught in the files that include libtorch, and around the flag parser"),
    (r"\bassert\s*\(", (), "a Status for input, a CHECK for a programmer's error"),
    (r"#\s*pragma\s+once\b", (), "an include guard"),
    (r"\busing\s+namespace\b", (), "names in full"),
]

_HERE = r"(TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK|not yet imple" r"mented|not imple" r"mented yet|place" r"holder)"
UNFINISHED = re.compile(r"\b" + _HERE + r"\b")
MACHINE_PATH = re.compile(r"(?<![\w./$}])/(work|home|root|Users)/")
LITERAL_PORT = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1?\]|0\.0\.0\.0):(?!0\b)\d+")


def is_checked(path):
    """Whether the rules look at this file at all."""
    return path.endswith(SOURCE) or path.rsplit("/", 1)[-1] in ("BUILD", "WORKSPACE") or path.endswith(".md")


def finding(path, line, text):
    return f"{path}:{line}: {text}"


def check_banned_words(path, text):
    found = []
    if path.endswith(CPP):
        for number, line in enumerate(source.strip(text).split("\n"), 1):
            for pattern, allowed, instead in BANNED:
                match = re.search(pattern, line)
                if match and not path.startswith(allowed or ("\0",)) and not _may_catch(path, text, match):
                    found.append(finding(path, number, f"'{match.group(0).strip()}' is banned; use {instead}"))
        for number, literal in source.strings(text):
            match = LITERAL_PORT.search(literal)
            if match and (path.startswith("tests/") or path.endswith("_test.cc")) and not path.endswith("url_test.cc"):
                found.append(finding(path, number, f"literal port in {match.group(0)}; listen on port 0 and ask"))
    if path.endswith(".py") and not path.startswith("tests/e2e/"):
        for number, line in enumerate(text.split("\n"), 1):
            if re.search(r"\btime\.sleep\(", line) and not path.startswith("tests/lint/"):
                found.append(finding(path, number, "'time.sleep' is banned; wait for the event itself"))
    return found


def _may_catch(path, text, match):
    """libtorch throws; a .cc that includes it is where that ends."""
    is_torch = re.search(r'#include (<(torch|ATen|c10)/|"daemon/training/torch_compat.h")', text)
    return match.group(0).startswith("catch") and path.endswith(".cc") and bool(is_torch)


def check_marks(path, text):
    """Marks of unfinished work, and paths that exist on one machine only."""
    found = []
    if path.startswith("tests/lint/"):
        return found
    for number, line in enumerate(text.split("\n"), 1):
        match = UNFINISHED.search(line)
        if match:
            found.append(finding(path, number, f"mark of unfinished work: {match.group(0)}"))
        match = MACHINE_PATH.search(line)
        if match:
            found.append(finding(path, number, f"path of one machine: {match.group(0)}"))
    return found


def check_file_size(path, text):
    lines = text.count("\n") + (0 if text.endswith("\n") or not text else 1)
    if path.endswith(SOURCE) and lines > MAX_FILE_LINES:
        return [finding(path, lines, f"{lines} lines; at most {MAX_FILE_LINES}")]
    return []


def check_function_sizes(texts):
    """Long functions are findings only once they are more than 3 % of all."""
    total, long_ones = 0, []
    for path, text in sorted(texts.items()):
        if not path.endswith(CPP):
            continue
        for block in source.blocks(text):
            if block.kind == "function":
                total += 1
                lines = block.end - block.begin + 1
                if lines > MAX_FUNCTION_LINES:
                    long_ones.append((path, block, lines))
    if len(long_ones) <= MAX_LONG_FUNCTIONS_FRACTION * total:
        return []
    return [finding(path, block.begin, f"{block.name} has {lines} lines; more than 3 % of the functions have over "
                    f"{MAX_FUNCTION_LINES}") for path, block, lines in long_ones]


def check_header_comments(path, text):
    """A header begins with what it is for; each class after the first has a comment of its own."""
    if not path.endswith(".h"):
        return []
    found = []
    lines = text.split("\n")
    if not lines[0].startswith("//"):
        found.append(finding(path, 1, "a header begins with a comment that says what it is"))
    is_first = True
    for number, line in enumerate(lines, 1):
        if not re.match(r"\s*(class|struct)\s+(?:[A-Z_]+\(.*\)\s+)?\w+[^;()]*\{", line):
            continue
        above = number - 2
        while above >= 0 and re.match(r"\s*template\s*<", lines[above]):
            above -= 1
        if not line.lstrip().startswith("class"):
            continue
        # The file's own comment speaks for its first class.
        if not is_first and not lines[above].lstrip().startswith(("//", "*/")):
            found.append(finding(path, number, f"no comment above: {line.strip()}"))
        is_first = False
    return found


def check_interfaces(path, text):
    """At most seven pure virtual methods to an interface; a class nested in it counts apart."""
    if not path.endswith(".h") or path.endswith(("_conformance.h", "_harness.h")):
        return []  # a suite's harness stands for a whole environment, not for a seam
    found = []
    classes = [block for block in source.blocks(text) if block.kind == "class"]
    code = source.strip(text).split("\n")
    for block in classes:
        inner = [b for b in classes if b is not block and block.begin < b.begin and b.end <= block.end]
        count = 0
        for number in range(block.begin, block.end + 1):
            if any(b.begin <= number <= b.end for b in inner):
                continue
            count += len(re.findall(r"=\s*0\s*;", code[number - 1])) if _is_virtual(code, number, block.begin) else 0
        if count > MAX_PURE_VIRTUALS:
            found.append(finding(path, block.begin, f"{block.name} has {count} pure virtual methods; at most "
                                 f"{MAX_PURE_VIRTUALS}"))
    return found


def _is_virtual(code, number, first):
    """Whether the declaration that ends on this line begins with `virtual`."""
    while number >= first:
        line = code[number - 1]
        if re.search(r"\bvirtual\b", line):
            return True
        number -= 1
        if number >= first and re.search(r"[;{}]\s*$", code[number - 1]):
            return False
    return False


def check_proto(path, text):
    """Each message says what it is, or each of its fields does; each enum's zero means unspecified."""
    if not path.endswith(".proto"):
        return []
    found = []
    lines = text.split("\n")
    open_blocks = []  # [kind, name, first line, has a comment, fields without one]
    for number, line in enumerate(lines, 1):
        code = line.split("//")[0].rstrip()
        has_comment = "//" in line or (number >= 2 and lines[number - 2].lstrip().startswith("//"))
        opening = re.match(r"\s*(message|enum|oneof|service|rpc)\s+(\w+).*\{", code)
        if opening:
            open_blocks.append([opening.group(1), opening.group(2), number, has_comment, 0])
            if opening.group(1) == "enum":
                body = code.split("{", 1)[1] + "".join(l.split("//")[0] for l in lines[number:number + 4])
                if not re.search(r"\w+_UNSPECIFIED\s*=\s*0\s*;", body):
                    found.append(finding(path, number, "the enum's zero is not ..._UNSPECIFIED"))
            code = code.split("{", 1)[1]
        if open_blocks and re.search(r"(^|[\s{;])[\w.]+ \w+ = \d+\s*;", code) and not has_comment:
            open_blocks[-1][4] += 1
        for _ in range(code.count("}")):
            if open_blocks:
                kind, name, first, described, bare = open_blocks.pop()
                if kind == "message" and bare and not described:
                    found.append(finding(path, first, f"{name}: neither the message nor {bare} of its fields say what "
                                         "they are"))
    return found


def check_unique_names(texts):
    """A file's name says what it is without its folder."""
    by_name = {}
    for path in sorted(texts):
        if path.endswith(CPP):
            by_name.setdefault(path.rsplit("/", 1)[-1], []).append(path)
    return [finding(paths[1], 1, f"another file has this name: {paths[0]}")
            for paths in by_name.values() if len(paths) > 1]


def check_unique_types(texts):
    """Two types of one name in the headers are one type to the linker, whichever it finds first."""
    first = {}
    found = []
    for path, text in sorted(texts.items()):
        if not path.endswith(".h"):
            continue
        blocks = source.blocks(text)
        for block in blocks:
            if block.kind == "class" and not _is_inside_class(blocks, block):
                if first.setdefault(block.name, path) != path:
                    found.append(finding(path, block.begin, f"{block.name} is also a type of {first[block.name]}"))
    return found


def _is_inside_class(blocks, block):
    parent = block.parent
    while parent >= 0:
        if blocks[parent].kind == "class":
            return True
        parent = blocks[parent].parent
    return False


def check_in_build(texts):
    """Every source is named in its folder's BUILD, so that it is built and tested."""
    found = []
    for path in sorted(texts):
        if not path.endswith((".cc", ".cu")):
            continue
        folder, name = path.rsplit("/", 1)
        if f'"{name}"' not in texts.get(f"{folder}/BUILD", ""):
            found.append(finding(path, 1, "no target in its folder's BUILD names this file"))
    return found


def check_all(texts):
    """Every finding over the whole tree."""
    found = []
    for path, text in sorted(texts.items()):
        for check in (check_banned_words, check_marks, check_file_size, check_header_comments, check_interfaces,
                      check_proto):
            found += check(path, text)
    found += layers.check_layers(texts)
    found += layers.check_doors(texts)
    found += check_function_sizes(texts)
    found += check_unique_names(texts)
    found += check_unique_types(texts)
    found += check_in_build(texts)
    return found
