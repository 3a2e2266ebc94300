"""The live E2M1 number line: Python computes every value, code and tie; the browser looks them up."""

import json
from typing import Any

import fp4kv
import matplotlib.pyplot as plt
import numpy as np
from IPython.display import display
from labkit import formats, plotting

from pictures.inline import WIDTH_INCHES, themed_svg

ALT = (
    "The fifteen values of E2M1 on a number line: 0, ±0.5, ±1, ±1.5, ±2, ±3, ±4 and ±6. "
    "Half a unit apart near zero, two units apart at the ends."
)
NEGATIVE_ZERO = 8


def number_line(start: float = 2.6) -> None:
    """Display the number line at `start`; without scripts it is a still picture."""
    data = json.dumps({**number_line_data(), "start": start, "label": ALT}, separators=(",", ":"))
    markup = (
        f'<e2m1-number-line><script type="application/json">{data}</script>'
        f'<div class="still course-plot">{still()}</div></e2m1-number-line>'
    )
    display({"text/html": markup, "text/plain": ALT}, raw=True)


def number_line_data() -> dict[str, list[dict[str, Any]]]:
    """Return the fifteen values in order with their codes and bits, and the code that each tie goes to."""
    codes = np.arange(16, dtype=np.uint8)
    values = fp4kv.decode_e2m1(codes)
    order = [code for code in np.argsort(values, kind="stable") if code != NEGATIVE_ZERO]
    ties = np.concatenate([-formats.E2M1_TIES[::-1], formats.E2M1_TIES])
    return {
        "grid": [
            {"value": float(values[c]), "code": int(c), "bits": f"{c >> 3:b}_{c >> 1 & 3:02b}_{c & 1:b}"} for c in order
        ],
        "ties": [{"at": float(t), "code": int(c)} for t, c in zip(ties, fp4kv.encode_e2m1(ties), strict=True)],
    }


def still() -> str:
    """Return the number line as a still SVG."""
    plotting.use_course_style()
    figure, axes = plt.subplots(figsize=(WIDTH_INCHES, 1.3))
    values = [entry["value"] for entry in number_line_data()["grid"]]
    axes.vlines(values, 0, 1, color=plotting.COLOURS["e2m1"])
    axes.set(ylim=(0, 1.6), yticks=[], xticks=[-6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6])
    axes.grid(False)
    axes.spines[["left", "right", "top"]].set_visible(False)
    picture = themed_svg(figure, ALT)
    plt.close(figure)
    return picture
