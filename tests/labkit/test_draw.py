"""The drawings show the numbers they are given, in colours that mean one thing."""

import io
import re
import subprocess
import sys
from collections.abc import Iterator

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from labkit.draw import draw_byte, draw_codes, draw_groups
from labkit.formats import E2M1_VALUES, code_fields
from labkit.plotting import COLOURS, DECIBELS_PER_BIT, Measured, plot_snr_by_bits, use_course_style
from matplotlib.colors import to_hex


@pytest.fixture(autouse=True)
def course_style() -> Iterator[None]:
    """The course's style, without a screen, and nothing left behind."""
    with mpl.rc_context():
        plt.switch_backend("agg")
        use_course_style()
        yield
        plt.close("all")


@pytest.mark.parametrize(("is_signed", "codes"), [(False, range(8)), (True, [*range(8), *range(9, 16)])])
def test_the_number_line_has_every_code_at_its_value(is_signed: bool, codes: list[int]) -> None:
    axes = draw_codes(is_signed=is_signed)
    places = {text.get_text(): text.xy[0] for text in axes.texts}
    expected = {code_fields(code): float(E2M1_VALUES[code & 7]) * (-1 if code > 7 else 1) for code in codes}
    assert places == expected


def test_the_number_line_points_from_value_to_rounded_value() -> None:
    axes = draw_codes([(2.6, 3.0), (1.25, 1.0)])
    arrows = [text for text in axes.texts if not text.get_text()]
    assert [(arrow.xyann[0], arrow.xy[0]) for arrow in arrows] == [(2.6, 3.0), (1.25, 1.0)]


def test_a_byte_is_drawn_bit_by_bit_from_the_left() -> None:
    axes = draw_byte(0x72)
    bits = sorted((text.get_position()[0], text.get_text()) for text in axes.texts if text.get_weight() == "bold")
    assert "".join(bit for _, bit in bits) == "01110010"
    names = {text.get_text(): text.get_position()[0] for text in axes.texts if text.get_text().startswith("element")}
    assert names["element 2j + 1"] < names["element 2j"]


@pytest.mark.parametrize("byte", [-1, 256])
def test_no_byte_is_not_drawn(byte: int) -> None:
    with pytest.raises(ValueError, match=f"byte: expected a number from 0 to 255, got {byte}"):
        draw_byte(byte)


def test_groups_show_both_arrays_and_the_range_of_each_scale() -> None:
    x = np.arange(32, dtype=np.float32)
    axes = draw_groups(x, x / 2, [2.0, 5.0])
    heights = [bar.get_height() for container in axes.containers for bar in container]
    assert heights == [*x, *(x / 2)]
    ends = sorted({float(y) for lines in axes.collections for segment in lines.get_segments() for y in segment[:, 1]})
    assert ends == [-30.0, -12.0, 12.0, 30.0]


def test_the_line_of_six_decibels_runs_through_the_best_scheme() -> None:
    rows = [Measured("integers", "integer", bits + 1.0, snr) for bits, snr in ((4, 20.0), (8, 45.0), (2, 3.0))]
    axes = plot_snr_by_bits(rows)
    line = axes.lines[0]
    x, y = line.get_xdata(), line.get_ydata()
    assert (x[-1], y[-1]) == (9.0, 45.0)
    assert (y[-1] - y[0]) / (x[-1] - x[0]) == pytest.approx(DECIBELS_PER_BIT)
    assert axes.get_xlabel() == "stored (bits per element)"


def test_every_colour_is_one_of_its_own() -> None:
    assert len(set(COLOURS.values())) == len(COLOURS)
    assert all(to_hex(colour) == colour for colour in COLOURS.values())


@pytest.mark.parametrize(
    "draw", [draw_codes, lambda: draw_byte(0x59), lambda: draw_groups(np.ones(32), scales=[1.0, 2.0])]
)
def test_drawings_use_no_other_colour(draw) -> None:
    draw()
    picture = io.StringIO()
    plt.savefig(picture, format="svg", transparent=True)
    used = set(re.findall(r"#[0-9a-f]{6}", picture.getvalue()))
    assert used <= set(COLOURS.values()), used - set(COLOURS.values())


def test_notebooks_show_vectors() -> None:
    code = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
import matplotlib.pyplot as plt
plt.switch_backend("agg")
from labkit.plotting import use_course_style
use_course_style()
assert "svg" in repr(shell.display_formatter.formatters["image/svg+xml"].type_printers), "no vectors"
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
