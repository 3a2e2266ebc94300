"""What a kernel's source may hold before any compiler sees it.

A kernel shares its memory with the runner that checks it, so what could reach around the checks is not compiled at all:
assembler, attributes, pragmas, foreign headers, names of the runner. The rules are those of a kernel that runs on a GPU
through CuPy, minus what no lab needs; each refusal names line and rule. The gate is the first of three walls: after it
come the compiled object's symbols (`library`) and the sandbox.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice, pairwise, takewhile

from autograder.native.names import (
    CONDITIONS,
    MEANT,
    NO_MACRO,
    REFUSED,
    RUNNER_NAME,
    is_allowed,
    is_of_the_runtime,
    is_reserved,
)
from autograder.native.tokens import Refused, Token, lines_of

HEADERS = {"cuda_fp16.h", "cuda_bf16.h"}
INCLUDES = [
    *([f'"{header}"'] for header in HEADERS),
    *(["<", *header.partition(".")[:2], "h", ">"] for header in HEADERS),
]
ATTRIBUTES = {"maybe_unused", "nodiscard", "fallthrough"}
DIRECTIVES = {"include", "define", "undef", "if", "ifdef", "ifndef", "elif", "else", "endif", "error", "pragma"}
AFTER_EXTERN_C = {
    "__global__",
    "__device__",
    "__host__",
    "__launch_bounds__",
    "__forceinline__",
    "static",
    "inline",
    "{",
}
AFTER_EXTERN = {"__shared__", "__align__", "alignas"}
PAIRS = {")": "(", "]": "[", "}": "{"}
STUB = re.compile(r'"not attempted: write the loop of (\w+)"')
COUNT_CONVERSION = re.compile(r"%[-+ #0-9.*']*(?:hh|h|ll|l|q|j|z|t|L)?n")  # printf writes through it
UNUSUAL_ESCAPE = re.compile(r"\\(?![ntr\\\"'])")


class NotAttempted(Refused):
    """The source still has the line that stands for the answer."""

    def __init__(self, line: int, task: str) -> None:
        super().__init__(line, f"the loop of {task} is still to be written")
        self.task = task


def admit(source: str) -> None:
    """Return if a source may be compiled.

    Raises
    ------
    NotAttempted
        If it is the skeleton that was released.
    Refused
        If it holds what no graded kernel may hold; the text says where and what.
    """
    lines = list(lines_of(source))
    defined: set[str] = set()
    for line in lines:
        if line[0].text == "#":
            _admit_directive(line, defined)
    code = [token for line in lines if line[0].text != "#" for token in line]
    for token in (token for line in lines for token in line if token.kind == "name"):
        _admit_name(token)
    _admit_code(code)


def _admit_directive(line: Sequence[Token], defined: set[str]) -> None:
    """Look at one line that begins with `#`."""
    word = line[1].text if len(line) > 1 else ""
    if word and word not in DIRECTIVES:
        raise Refused(line[0].line, f"#{word} is not among the directives of a graded kernel")
    if word == "error" and (stub := STUB.fullmatch("".join(token.text for token in line[2:]))):
        raise NotAttempted(line[0].line, stub[1])
    if word == "include" and [token.text for token in line[2:]] not in INCLUDES:  # as they stand: no macro's name
        raise Refused(line[0].line, f"#include: expected one of {', '.join(sorted(HEADERS))}")
    if word == "pragma" and (len(line) < 3 or line[2].text != "unroll" or len(line) > 6):
        raise Refused(line[0].line, "#pragma: expected `#pragma unroll`, and nothing else")
    if word in ("if", "ifdef", "ifndef", "elif"):
        _admit_condition(line)
    if word == "define":
        _admit_macro(line, defined)
    if word == "undef" and (len(line) < 3 or line[2].text not in defined):
        raise Refused(line[0].line, "#undef: expected a macro of this source")


def _admit_condition(line: Sequence[Token]) -> None:
    """Two compilers read a source, and both must read the same: what only one of them has is asked for by none."""
    for token in line[2:]:
        name = token.text
        is_meant = name in MEANT or is_of_the_runtime(name) or is_allowed(name)
        if is_meant and name not in CONDITIONS:
            raise Refused(token.line, f"#{line[1].text}: expected macros of your own, got {name}")


def _admit_macro(line: Sequence[Token], defined: set[str]) -> None:
    """A macro gives a new name to whole things: it joins no names and leaves no bracket open."""
    name = line[2].text if len(line) > 2 else ""
    if name in NO_MACRO or is_reserved(name) or is_of_the_runtime(name):
        raise Refused(line[0].line, f"#define: expected a name of your own, got {name}")
    if any(token.text == "extern" for token in line):
        raise Refused(line[0].line, "#define: expected no extern: write it where it holds")
    if any(token.text == "##" for token in line):
        raise Refused(line[0].line, "#define: expected no ##, which makes names that cannot be read here")
    if any(token.text == "[" == after.text for token, after in pairwise(line)):
        raise Refused(line[0].line, "[[…]]: attributes are not graded")
    _require_nesting(line[3:])
    _admit_printf(line)
    defined.add(name)


def _admit_name(token: Token) -> None:
    if token.text in REFUSED:
        raise Refused(token.line, f"{token.text}: {REFUSED[token.text]}")
    if RUNNER_NAME.fullmatch(token.text):
        raise Refused(token.line, f"{token.text} is a name of the runner's own")
    if is_reserved(token.text) and not is_allowed(token.text):
        raise Refused(token.line, f"{token.text} is reserved, and not among the names of CUDA that are graded")


def _admit_code(code: Sequence[Token]) -> None:
    """Look at the tokens outside of directives, each with the two that follow."""
    end = Token("mark", "", code[-1].line if code else 0)
    _require_nesting(code)
    for token, second, third in zip(code, [*code[1:], end], [*code[2:], end, end], strict=False):
        if token.text in ("#", "##"):
            raise Refused(token.line, "# stands at the beginning of a line only")
        if token.text == "[" == second.text and third.text not in ATTRIBUTES:
            raise Refused(token.line, "[[…]]: attributes are not graded")
        if token.text == "goto" and second.text == "*":
            raise Refused(token.line, "goto: expected a label")
        if token.text == "extern":
            _admit_extern(token, second, third)
    for declaration in _with_c_linkage(code):
        _admit_declaration(declaration)
    _admit_printf(code)


def _admit_extern(token: Token, second: Token, third: Token) -> None:
    """Only a kernel or function of the source is `extern "C"`; only dynamic shared memory is `extern` alone."""
    is_own = third.text in AFTER_EXTERN_C if second.text == '"C"' else second.text in AFTER_EXTERN
    if not is_own:
        raise Refused(token.line, 'extern: expected `extern "C" __global__ …` or `extern __shared__ …`')


def _with_c_linkage(code: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield each declaration behind `extern "C"`, or inside of its braces, up to its `;` or the `{` of its body."""
    tokens = iter(code)
    for token in tokens:
        if token.text != "extern" or [word.text for word in islice(tokens, 1)] != ['"C"']:
            continue
        first = list(islice(tokens, 1))
        is_block = [word.text for word in first] == ["{"]
        yield from _declarations(tokens) if is_block else islice(_declarations(chain(first, tokens)), 1)


def _declarations(tokens: Iterator[Token]) -> Iterator[list[Token]]:
    """Yield declarations until a brace closes what was open before; what a namespace holds counts as outside of it."""
    head: list[Token] = []
    opened, brackets = 0, 0
    for token in tokens:
        brackets += (token.text in ("(", "[")) - (token.text in (")", "]"))
        if brackets or token.text not in ("{", "}", ";"):
            head.append(token)
            continue
        if token.text == "}":
            opened -= 1
        elif token.text == "{" and any(word.text in ("namespace", "extern") for word in head):
            opened += 1
        else:
            if head:
                yield [*head, token]
            if token.text == "{":
                _pass_body(tokens)
        if opened < 0:
            return
        head = []


def _pass_body(tokens: Iterator[Token]) -> None:
    depth = 1
    while depth and (token := next(tokens, None)):
        depth += (token.text == "{") - (token.text == "}")


def _admit_declaration(declaration: Sequence[Token]) -> None:
    """A name with C's linkage is a kernel's or a function's of the source: others would be the C library's."""
    depth = 0
    for token in declaration:
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        if token.kind == "name" and not depth and is_of_the_runtime(token.text):
            raise Refused(token.line, f"{token.text} is the name of a function of the runtime: choose another")
    last, words = declaration[-1], {token.text for token in declaration}
    if last.text == ";" and "(" in words and "__global__" not in words:
        raise Refused(declaration[0].line, 'extern "C": expected a kernel, or a function with its body')


def _admit_printf(code: Sequence[Token]) -> None:
    """The format of printf can be read here, and counts nothing."""
    for index, token in enumerate(code):
        if token.text != "printf" or token.kind != "name":
            continue
        after = code[index + 1 :]
        strings = list(takewhile(lambda following: following.kind == "string", after[1:]))
        text = "".join(string.text[1:-1] for string in strings)
        closing = after[len(strings) + 1].text if len(after) > len(strings) + 1 else ""
        is_call = after[:1] and after[0].text == "(" and strings and closing in (",", ")")
        if not is_call or COUNT_CONVERSION.search(text) or UNUSUAL_ESCAPE.search(text):
            raise Refused(token.line, "printf: expected a format in quotes, without %n")


def _require_nesting(tokens: Sequence[Token]) -> None:
    """Brackets close what they open, so that a macro or its argument cannot end another's brackets."""
    opened: list[Token] = []
    for token in (token for token in tokens if token.kind == "mark"):
        if token.text in PAIRS.values():
            opened.append(token)
        elif token.text in PAIRS and (not opened or opened.pop().text != PAIRS[token.text]):
            raise Refused(token.line, f"{token.text} closes no {PAIRS[token.text]}: brackets must nest, #if or not")
    if opened:
        raise Refused(opened[-1].line, f"{opened[-1].text} is not closed: brackets must nest, #if or not")
