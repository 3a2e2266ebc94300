"""Reading a notebook's bytes: every encoding and format that students bring, and what is refused."""

import json

import pytest

from autograder.errors import SubmissionError
from autograder.intake import parse as intake_parse
from autograder.intake.parse import Cell, defined_names, is_unfinished, parse_notebook, skeleton


def notebook_bytes(*sources, **top):
    cells = [{"cell_type": "code", "id": f"c{n}", "metadata": {}, "source": s} for n, s in enumerate(sources)]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5} | top).encode()


def sources(data):
    return [cell.source for cell in parse_notebook(data)[0]]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_every_unicode_encoding_is_read(encoding):
    data = notebook_bytes("x = 'ü'").decode().encode(encoding)
    assert sources(data) == ["x = 'ü'"]


def test_a_byte_order_mark_is_noted():
    _, notes = parse_notebook(b"\xef\xbb\xbf" + notebook_bytes("1"))
    assert notes == ["byte-order mark: left out"]


def test_windows_1252_is_read_and_noted():
    data = json.dumps({"cells": [{"cell_type": "code", "source": "# é €"}], "nbformat": 4}, ensure_ascii=False)
    cells, notes = parse_notebook(data.encode("cp1252"))
    assert cells[0].source == "# é €" and notes == ["not UTF-8: read as Windows-1252"]


def test_source_may_be_a_list_and_line_ends_are_made_one():
    assert sources(notebook_bytes(["a = 1\r\n", "b = 2\r", 7, "c"])) == ["a = 1\nb = 2\nc"]


def test_lone_surrogates_are_replaced_and_noted():
    cells, notes = parse_notebook(notebook_bytes("x = '\ud800'"))
    assert cells[0].source == "x = '?'" and "half characters" in notes[0]


def test_nbformat_3_is_converted():
    cells = [
        {"cell_type": "heading", "level": 2, "source": "Title"},
        {"cell_type": "code", "input": ["x = 1\n", "y = 2"], "outputs": []},
    ]
    document = {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": cells}]}
    found, notes = parse_notebook(json.dumps(document).encode())
    assert [(cell.kind, cell.source) for cell in found] == [("markdown", "## Title"), ("code", "x = 1\ny = 2")]
    assert "converted" in notes[0]


def test_newer_minors_are_read_and_noted():
    cells, notes = parse_notebook(notebook_bytes("1", nbformat_minor=9))
    assert len(cells) == 1 and "newer than 4.5" in notes[0]


def test_nbformat_5_is_read_if_its_cells_are_those_of_4():
    cells, notes = parse_notebook(notebook_bytes("1", nbformat=5))
    assert len(cells) == 1 and "nbformat '5'" in notes[0]


def test_nbformat_5_of_another_shape_is_refused():
    data = json.dumps({"nbformat": 5, "cells": [{"type": "code", "text": "1"}]}).encode()
    with pytest.raises(SubmissionError, match="does not convert"):
        parse_notebook(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty"),
        (b" \n\x00\x00", "empty"),
        (b"\xef\xbb\xbf", "empty"),
        (b"PK\x03\x04 a zip", "expected JSON"),
        (b'{"cells": [', "expected JSON"),
        (b"[1]", "expected a JSON object, got list"),
        (b"null", "expected a JSON object"),
        (b"{}", "expected a list of cells"),
        (b'{"cells": {"a": 1}, "nbformat": 4}', "expected a list of cells"),
        (b'{"cells":' + b"[" * 200_000 + b"]" * 200_000 + b"}", "nested too deep"),
        (b'{"cells": [], "x": [' + b"{}," * 1_000_001 + b"0]}", "too many objects"),
    ],
    ids=lambda value: repr(value[:24]),
)
def test_what_is_no_notebook_is_refused(data, message):
    with pytest.raises(SubmissionError, match=message):
        parse_notebook(data)


def test_too_many_cells_are_refused(monkeypatch):
    monkeypatch.setattr(intake_parse, "MAX_CELLS", 2)
    with pytest.raises(SubmissionError, match="at most 2 cells, got 3"):
        parse_notebook(notebook_bytes("1", "2", "3"))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1" * 100_000, "1e999999", "-0"])
def test_odd_numbers_are_read(number):
    data = notebook_bytes("1").replace(b'"nbformat_minor": 5', b'"nbformat_minor": ' + number.encode())
    assert sources(data) == ["1"]


def test_the_last_of_two_equal_keys_counts_and_is_noted():
    data = b'{"nbformat": 4, "cells": [], "cells": [{"cell_type": "code", "source": "2"}]}'
    cells, notes = parse_notebook(data)
    assert [cell.source for cell in cells] == ["2"] and "cells" in notes[0]


@pytest.mark.parametrize(
    "cell",
    [
        {},
        {"cell_type": 3, "source": 4, "metadata": 5, "id": 6},
        {"cell_type": "code", "source": {"a": 1}, "metadata": {"nbgrader": []}},
        {"cell_type": "code", "metadata": {"nbgrader": {"grade_id": ["x"]}}},
        {"cell_type": "markdown", "attachments": {"a": {"image/png": 1}, "b": 2}},
    ],
)
def test_fields_of_the_wrong_type_count_as_absent(cell):
    found, _ = parse_notebook(json.dumps({"nbformat": 4, "cells": [cell, "no cell", None]}).encode())
    assert [(c.id, c.grade_id, c.source, c.attachments) for c in found] == [("", "", "", {})]


def test_names_are_those_of_the_top_level():
    source = (
        "import numpy as np, math\nfrom helper import (f, g as h)\nasync def a():\n    inner = 1\n"
        "class B: pass\nc: int = 3\nd == 4\ne = 5\n"
    )
    cell = Cell(0, "", "", "code", source)
    assert cell.names == {"np", "math", "f", "h", "a", "B", "c", "e"}
    assert defined_names(source) == {"a", "B"}


def test_skeleton_ignores_comments_strings_and_layout():
    stub = 'def f(x):\n    """Return."""\n    raise NotImplementedError("f")\n'
    same = 'def f( x ):\n\n  # mine\n  "other"\n  raise NotImplementedError()\n'
    assert skeleton(stub.replace('"f"', "")) == skeleton(same)
    assert skeleton(stub) != skeleton(stub.replace("raise NotImplementedError", "return"))


@pytest.mark.parametrize(
    ("source", "unfinished"),
    [("x = (1,", True), ('x = """a', True), ("x = 1", False), ("def f():", False), ("x = 'a", False)],
)
def test_a_piece_is_unfinished_inside_brackets_and_long_strings(source, unfinished):
    assert is_unfinished(source) is unfinished
