"""A kernel's source as a C++ compiler splits it: tokens with their lines, comments and line splices gone.

What would let one text mean two things is refused here: trigraphs, digraphs, raw strings, and characters that no
kernel needs outside of comments and strings. So what the gate reads is what the compiler reads.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_BYTES, MAX_LINES = 64 * 1024, 2_000
MAX_TOKENS = 20_000

_TRIGRAPH = re.compile(r"\?\?[=/'()!<>-]")
_CONTROL = re.compile(r"[^\n\t\x20-\x7e\xa0-\ud7ff\ue000-\U0010ffff]|[\u2028\u2029]")
_SPLICE = re.compile(r"\\[ \t]*\n")
_TOKEN = re.compile(
    r"""
      (?P<blank>[ \t]+)
    | (?P<newline>\n)
    | (?P<comment>//[^\n]*|/\*.*?\*/)
    | (?P<string>(?:u8|u|U|L)?"(?:\\[^\n]|[^"\\\n])*")
    | (?P<character>(?:u8|u|U|L)?'(?:\\[^\n]|[^'\\\n])+')
    | (?P<number>\.?[0-9](?:[eEpP][+-]|'[0-9A-Za-z_]|[0-9A-Za-z_.])*)
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<mark>\#\#|::|->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||\.\.\.|[-+*/%&|^=]=|[][{}()<>;:,.?~!+\-*/%&|^=\#])
    """,
    re.VERBOSE | re.DOTALL,
)
_RAW_STRING = re.compile(r'\b(?:u8|u|U|L)?R"')
# `<::` is `<` and `::` unless `:` or `>` follows.
_DIGRAPH = re.compile(r"<%|%>|%:|:>|<:(?!:)|<::(?=[:>])")


class Refused(Exception):  # noqa: N818 - a verdict on a source, not a fault of ours
    """A source that is not compiled: the line, counted from 1, and the rule that it breaks."""

    def __init__(self, line: int, rule: str) -> None:
        super().__init__(f"line {line}: {rule}" if line else rule)
        self.line, self.rule = line, rule


@dataclass(frozen=True)
class Token:
    """One token: its kind (string, character, number, name or mark), text, and line counted from 1."""

    kind: str
    text: str
    line: int


def lines_of(source: str) -> Iterator[list[Token]]:
    """Yield the tokens of each logical line that has any: a directive is always a line of its own.

    Raises
    ------
    Refused
        If the text is too long, or holds something that a compiler could read in another way.
    """
    _require_size(source)
    text, numbers = _joined(source)
    current: list[Token] = []
    count = 0
    for token in _split(text, numbers):
        if token.kind == "newline":
            if current:
                yield current
            current = []
        else:
            count += 1
            if count > MAX_TOKENS:
                raise Refused(token.line, f"expected at most {MAX_TOKENS} tokens")
            current.append(token)
    if current:
        yield current


def _require_size(source: str) -> None:
    if len(source.encode("utf-8", "replace")) > MAX_BYTES or source.count("\n") > MAX_LINES:
        raise Refused(0, f"a kernel's source: expected at most {MAX_BYTES} bytes and {MAX_LINES} lines")
    if found := _CONTROL.search(source):
        raise Refused(_line(source, found.start()), f"expected text, got the control character {found[0]!r}")
    if found := _TRIGRAPH.search(source):
        raise Refused(_line(source, found.start()), f"{found[0]} is a trigraph, another character to some compilers")


def _joined(source: str) -> tuple[str, list[int]]:
    """Return the text with spliced lines joined, and the line that each of its characters stood in."""
    numbers: list[int] = []
    parts: list[str] = []
    start, line = 0, 1
    for end, after in [*(found.span() for found in _SPLICE.finditer(source)), (len(source), len(source))]:
        for character in source[start:end]:
            numbers.append(line)
            line += character == "\n"
        parts.append(source[start:end])
        start, line = after, line + 1
    return "".join(parts), [*numbers, line]


def _split(text: str, numbers: list[int]) -> Iterator[Token]:
    position = 0
    while position < len(text):
        line = numbers[position]
        found = _TOKEN.match(text, position)
        if found is None or (text.startswith("/*", position) and found.lastgroup != "comment"):
            raise Refused(line, _why_no_token(text[position : position + 2]))
        if (digraph := _DIGRAPH.match(text, position)) or (digraph := _RAW_STRING.match(text, position)):
            raise Refused(line, f"{digraph[0]} is another spelling that a kernel does not need")
        kind = str(found.lastgroup)
        if kind in ("string", "character") and not found[0].isprintable():
            raise Refused(line, "expected printable characters in a string")
        if kind not in ("blank", "comment"):
            yield Token(kind, found[0], line)
        position = found.end()


def _why_no_token(text: str) -> str:
    if text[0] in "\"'":
        return "expected the string to end in its line"
    if text == "/*":
        return "expected the comment to end"
    return f"expected C++, got the character {text[0]!r}"


def _line(source: str, position: int) -> int:
    return source.count("\n", 0, position) + 1
