"""How the pages are written: a sentence a line, British spelling, words in one sense, figures that are named."""

import re
from pathlib import Path

import pytest
import yaml

BOOK = Path(__file__).resolve().parents[2] / "book"
PAGES = sorted(BOOK.glob("*.md"))
CHAPTERS = [path for path in PAGES if re.search(r"^chapter: \d", path.read_text(encoding="utf-8"), re.MULTILINE)]

BANNED = ("simply", "just", "obviously", "powerful", "leverage", "utilise", "trivially", "clearly", "of course")
AMERICAN = re.compile(
    r"\b(\w*(?:quantiz|normaliz|initializ|optimiz|organiz|recogniz|summariz|minimiz|maximiz|summariz|serializ)\w*"
    r"|colors?|behaviors?|neighbors?|favors?|centers?|centered|gray|modeling|labeled|canceled|catalog|analyze[ds]?)\b",
    re.IGNORECASE,
)
ABBREVIATIONS = re.compile(r"\b(?:e\.g|i\.e|cf|et al|vs|approx)\.")
SENTENCE_END = re.compile(r"[.?!](?:[\"”)*_]|\{[a-z]+\}`[^`]*`)*\s+(?=[\"“(*_]*[A-ZÀ-Þ$])")
LONGEST_CELL_LINES, WIDEST_CELL = 12, 80  # lines shown; columns that fit the page without scrolling
CHAPTER_WORDS = (1200, 2000)


def without_front_matter(text: str) -> str:
    return re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)


def code_cells(text: str) -> list[tuple[dict, str]]:
    """Return the options and the code of each code cell."""
    found = []
    for block in re.findall(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        options = "\n".join(line[1:] for line in re.findall(r"^:.*$", block, re.MULTILINE))
        found.append((yaml.safe_load(options) or {}, re.sub(r"^:.*\n", "", block, flags=re.MULTILINE)))
    return found


def prose_lines(text: str) -> list[str]:
    """Return the lines of running text: no code, tables, formulae, headings, list entries or directives."""
    text = without_front_matter(text)
    text = re.sub(
        r"^(`{3,})\{(?:exercise|solution|glossary)\}[^\n]*\n(?::[^\n]*\n)*(.*?)^\1$", r"\2", text, flags=re.M | re.S
    )
    text = re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"\$\$.*?\$\$[^\n]*", "", text, flags=re.DOTALL)
    lines = [line for line in text.splitlines() if not re.match(r"^(\||#|:|\(|!\[|\{|\[.*\]\(.*\)$)", line)]
    return [line for line in lines if line.strip()]


def plain(line: str) -> str:
    """Return a line without citations, code and formulae."""
    line = re.sub(r"\{cite\}`[^`]*`", "", line)
    return re.sub(r"\$[^$]*\$", "X", re.sub(r"`[^`]*`", "`X`", line))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_line_is_one_sentence(path):
    several = [
        line
        for line in prose_lines(path.read_text(encoding="utf-8"))
        if not re.match(r"^(\d+\.|-) ", line)
        and SENTENCE_END.search(ABBREVIATIONS.sub("", re.sub(r"\*\*[^*]*\.\*\*$", "", plain(line))))
    ]
    assert not several


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_no_sentence_is_broken_over_lines(path):
    lines = prose_lines(path.read_text(encoding="utf-8"))
    is_term = re.compile(r"[\w-]+(?: [\w-]+){0,2}")  # an entry of the glossary
    broken = [line for line in lines if re.match(r"^[a-z]", line) and not is_term.fullmatch(line)]
    assert not broken


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_no_banned_word_stands_in_the_text(path):
    text = "\n".join(map(plain, prose_lines(path.read_text(encoding="utf-8"))))
    found = [word for word in BANNED if re.search(rf"\b{word}\b", text, re.IGNORECASE)]
    assert not found
    assert "!" not in re.sub(r"!\[", "", text)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_spelling_is_british(path):
    text = without_front_matter(path.read_text(encoding="utf-8"))
    text = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", "", text, flags=re.DOTALL)
    assert AMERICAN.findall(text) == []


def test_american_spelling_would_be_found():
    assert AMERICAN.findall("Quantize the color of its neighbors") == ["Quantize", "color", "neighbors"]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_headings_go_two_levels_deep(path):
    text = re.sub(r"^(`{3,}).*?^\1$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    levels = [len(mark) for mark in re.findall(r"^(#+) ", text, re.MULTILINE)]
    assert levels.count(1) == 1
    assert max(levels) <= 3


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_chapter_has_the_length_of_a_sitting(path):
    words = " ".join(map(plain, prose_lines(path.read_text(encoding="utf-8")))).split()
    assert CHAPTER_WORDS[0] <= len(words) <= CHAPTER_WORDS[1]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_shown_code_is_short_and_fits_the_page(path):
    for options, code in code_cells(path.read_text(encoding="utf-8")):
        if not {"remove-input", "hide-input", "remove-cell"} & set(options.get("tags", [])):
            assert len(code.strip().splitlines()) <= LONGEST_CELL_LINES, code
            assert [line for line in code.splitlines() if len(line) > WIDEST_CELL] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_commands_fit_the_page(path):
    blocks = re.findall(r"^```(?:sh|text)\n(.*?)^```$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert [line for block in blocks for line in block.splitlines() if len(line) > WIDEST_CELL] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_figures_are_named_captioned_described_and_called(path):
    text = path.read_text(encoding="utf-8")
    for options, code in code_cells(text):
        if "show(figure" not in code and "number_line()" not in code and "inline.show" not in code:
            continue
        figure = options.get("mystnb", {}).get("figure", {})
        assert re.fullmatch(r"fig-[a-z-]+", figure.get("name", "")), code
        assert figure.get("caption", "").endswith("."), figure
        assert "set_title" not in code
        if "inline.show" in code:
            alt = re.search(r'inline\.show\(figure, "([^"]+)"\)', code)
            assert alt, f"{figure['name']}: no alternative text"
            assert len(alt[1]) > 40, alt[1]
        if path in CHAPTERS:
            before = text[: text.index(f"name: {figure['name']}")]
            assert f"{{numref}}`{figure['name']}`" in before, f"{figure['name']}: not named before it appears"


def glossary_terms() -> list[str]:
    text = (BOOK / "glossary.md").read_text(encoding="utf-8")
    inside = text[text.index("```{glossary}") :]
    return re.findall(r"^([A-Za-z][^\n]*)\n  \S", inside, re.MULTILINE)


def test_glossary_is_in_order_and_every_entry_is_used():
    terms = glossary_terms()
    assert terms == sorted(terms, key=str.lower)
    text = "\n".join(path.read_text(encoding="utf-8") for path in PAGES if path.stem != "glossary").lower()
    unused = [term for term in terms if term.lower() not in text]
    assert len(terms) >= 15
    assert not unused


def test_bold_words_of_chapters_are_in_the_glossary():
    terms = {term.lower() for term in glossary_terms()}
    missing = [
        word
        for path in CHAPTERS
        for word in re.findall(r"\*\*([^*.]+)\*\*", without_front_matter(path.read_text(encoding="utf-8")))
        if word.lower() not in terms
    ]
    assert not missing


def test_every_source_is_cited_and_has_an_address():
    entries = re.findall(r"@\w+\{(\w+),(.*?)^\}", (BOOK / "references.bib").read_text(encoding="utf-8"), re.M | re.S)
    text = "\n".join(path.read_text(encoding="utf-8") for path in CHAPTERS)
    cited = {key for keys in re.findall(r"\{cite\}`([^`]+)`", text) for key in keys.split(",")}
    assert cited == {key for key, _ in entries}
    assert [key for key, body in entries if "url = {https://" not in body] == []
