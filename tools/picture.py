"""Draw the README's picture, the way of a lab from its source to a mark: `python tools/picture.py [--check]`."""

import html
import sys
from dataclasses import dataclass
from pathlib import Path

TARGET = Path(__file__).resolve().parents[1] / "book" / "assets" / "course.svg"
WIDTH, HEIGHT = 960, 330
STYLE = """
  text { font: 15px system-ui, sans-serif; fill: #1d1f23 } .small { font-size: 12.5px; fill: #565b63 }
  .room { fill: #f4f2ee; stroke: #b9b3a7 } .private { fill: #d9ece9; stroke: #0b6b63 }
  .wall { fill: none; stroke: #b4510c; stroke-width: 2; stroke-dasharray: 7 5 }
  .arrow { stroke: #565b63; stroke-width: 1.6; fill: none; marker-end: url(#head) } .head { fill: #565b63 }
  .fault { fill: #b4510c }
  @media (prefers-color-scheme: dark) {
    text { fill: #e4e2dd } .small { fill: #a9adb3 } .room { fill: #1d2125; stroke: #565d64 }
    .private { fill: #1f3a37; stroke: #63cabb } .wall { stroke: #f0a35e } .fault { fill: #f0a35e }
    .arrow { stroke: #a9adb3 } .head { fill: #a9adb3 }
  }"""


@dataclass(frozen=True)
class Box:
    """A room of the picture: where it stands and what it says."""

    x: int
    y: int
    title: str
    lines: tuple[str, ...]
    kind: str = "room"
    width: int = 180
    height: int = 84

    def svg(self) -> str:
        """Return the box with its title and its small lines."""
        text = [f'<text x="{self.x + 14}" y="{self.y + 27}">{html.escape(self.title)}</text>']
        for number, line in enumerate(self.lines):
            place = f'x="{self.x + 14}" y="{self.y + 49 + 18 * number}"'
            text.append(f'<text class="small" {place}>{html.escape(line)}</text>')
        shape = f'x="{self.x}" y="{self.y}" width="{self.width}" height="{self.height}" rx="9"'
        return f'<rect class="{self.kind}" {shape} />' + "".join(text)


BOXES = (
    Box(16, 28, "one source", ("fp4kv: the reference", "a lab: text and checks"), "private"),
    Box(16, 214, "the book", ("derives what the lab", "asks to write")),
    Box(268, 28, "the released lab", ("stubs, visible cases,", "no answer")),
    Box(268, 214, "a student", ("opens, writes, validates,", "submits a notebook")),
    Box(534, 214, "the kernel", ("runs the cells and the", "student's functions")),
    Box(534, 28, "the judge", ("holds inputs, expected", "values, points"), "private"),
    Box(764, 28, "gradebook", ("marks, feedback, report,", "export"), "private"),
)
ARROWS = (
    "M196 70 H262",
    "M106 112 V208",
    "M358 112 V208",
    "M448 256 H528",
    "M598 112 V208",
    "M650 214 V118",
    "M714 70 H758",
)
LABEL = (
    "One source makes the book's signatures, the released lab and the hidden checks. A student's notebook runs in a "
    "kernel inside a sandbox; the judge outside calls its functions, compares values and enters marks in the gradebook."
)


def picture() -> str:
    """Return the SVG."""
    head = '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    defs = head + '<path class="head" d="M0 0 L8 4 L0 8 z" /></marker></defs>'
    arrows = "".join(f'<path class="arrow" d="{path}" />' for path in ARROWS)
    wall = '<rect class="wall" x="512" y="184" width="226" height="130" rx="12" />'
    words = (
        '<text class="small" x="556" y="160" text-anchor="end">calls</text>'
        '<text class="small" x="662" y="160">values, as data</text>'
        '<text class="small fault" x="752" y="252">sandbox: no network,</text>'
        '<text class="small fault" x="752" y="270">no answers, limits</text>'
    )
    body = defs + wall + arrows + "".join(box.svg() for box in BOXES) + words
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title">'
        f'<title id="title">{html.escape(LABEL)}</title><style>{STYLE}\n</style>{body}</svg>\n'
    )


def main() -> int:
    """Write the picture, or with --check say whether it is up to date."""
    if "--check" in sys.argv[1:]:
        return 0 if TARGET.read_text(encoding="utf-8") == picture() else 1
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(picture(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
