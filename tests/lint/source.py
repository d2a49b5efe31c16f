"""A scanner of C++ text that is just good enough for counting: comments, strings, braces."""

import re
from collections import namedtuple

# kind: "function", "class" or "other"; lines are 1-based, of the opening's first line and the closing brace.
Block = namedtuple("Block", "kind name begin end parent")

_TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^()\\ ]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-zA-Z_])\'(?:\\.|[^\'\\\n])*\'', re.S)


def _blank(text):
    return re.sub(r"[^\n]", " ", text)


def strip(text, keep_strings=False):
    """The text with comments (and strings) blanked out, every line where it was."""

    def replace(match):
        token = match.group(0)
        if token.startswith(("//", "/*")):
            return _blank(token)
        if keep_strings:
            return token
        return '"' + _blank(token[1:-1]) + '"'

    return _TOKEN.sub(replace, text)


def strings(text):
    """(line, literal) of each string literal that is not in a comment."""
    found = []
    for match in _TOKEN.finditer(text):
        token = match.group(0)
        if token.startswith(('"', 'R"')):
            found.append((text.count("\n", 0, match.start()) + 1, token))
    return found


def includes(text):
    """(line, target) of each #include, the target with its quotes or angle brackets."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        match = re.match(r'\s*#\s*include\s*(<[^>]+>|"[^"]+")', line)
        if match:
            found.append((number, match.group(1)))
    return found


_CONTROL = re.compile(r"^(if|for|while|switch|do|else|try|catch|return|namespace|enum|extern|union)\b")
_LAMBDA = re.compile(r"\[[^\]]*\]\s*(\([^()]*\))?\s*(mutable\s*)?(->\s*[\w:<>*& ]+\s*)?$")
_CLASS = re.compile(r"^(?:template\s*<.*>\s*)?(?:class|struct)\s+(?:[A-Z_]+\([^()]*\)\s+)*((?:\w+::)*\w+)[^(]*$", re.S)


def _classify(head):
    """(kind, name) of the block that the text `head` opens."""
    head = re.sub(r"^(?:\s*(?:public|private|protected)\s*:)+", "", head).strip()
    match = _CLASS.match(head)
    if match:
        return "class", match.group(1)
    if _CONTROL.match(head) or "(" not in head or head.endswith("=") or _LAMBDA.search(head):
        return "other", ""
    name = re.search(r"([~\w:]+|operator[^\s(]+)\s*\(", head)
    return "function", name.group(1) if name else ""


def blocks(text):
    """The brace blocks of a file in the order they open. What is inside a function is "other".

    Relies on clang-format: a body's brace has white space before it, an initialiser's (`a_{1}`) has none.
    """
    code = re.sub(r"(?m)^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", lambda m: _blank(m.group(0)), strip(text))
    found, stack = [], []  # stack: (index of the block or -1 for an initialiser, parentheses open outside it)
    head_start, parens, line = 0, 0, 1
    for position, character in enumerate(code):
        if character == "\n":
            line += 1
        elif character == "(":
            parens += 1
        elif character == ")":
            parens = max(0, parens - 1)
        elif character == ";" and parens == 0:
            head_start = position + 1
        elif character == "{":
            if position and not code[position - 1].isspace():
                stack.append((-1, parens))
                continue
            head = code[head_start:position]
            open_blocks = [index for index, _ in stack if index >= 0]
            kind, name = _classify(head)
            if parens or any(found[index].kind == "function" for index in open_blocks):
                kind, name = "other", ""
            lead = re.match(r"(?:\s*(?:public|private|protected)\s*:)*\s*", head).end()
            begin = line - head[lead:].count("\n")
            found.append(Block(kind, name, begin, 0, open_blocks[-1] if open_blocks else -1))
            stack.append((len(found) - 1, parens))
            head_start, parens = position + 1, 0
        elif character == "}" and stack:
            index, parens = stack.pop()
            if index >= 0:
                found[index] = found[index]._replace(end=line)
                head_start = position + 1
    # Unclosed ones (a file cut short) stay, so that parents keep their places.
    return [block if block.end else block._replace(end=line) for block in found]
