"""The live figure of chapter 4 says what the library says, with a mouse, a keyboard, or no script at all."""

import json

import fp4kv
import numpy as np
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(600), pytest.mark.xdist_group("book")]

CHANNEL, N_CHANNELS, N_STEPS = 5, 16, 41
ORDINARY = np.arange(N_CHANNELS) != CHANNEL
HALF_A_DIGIT = 0.0005 + 1e-9  # the page holds three digits after the point; 0.4375 is written with an error of half one
EVERY_STATE = """() => {
    const figure = document.querySelector("bad-channel"), seen = [];
    for (const scale of ["group", "channel", "rotated"])
        for (let step = 0; step < figure.data.steps.length; step++) {
            figure.set(step, scale);
            const crosses = [...figure.querySelectorAll(".cross")].map((cross) => cross.style.display !== "none");
            seen.push({ scale, ...figure.dataset, crosses });
        }
    return seen;
}"""


def decoded_token(size: float, scale: str) -> np.ndarray:
    """Return token 0 of the figure's keys, made anew, after one of the three ways to share scales."""
    keys = np.random.default_rng(7).normal(size=(N_CHANNELS, N_CHANNELS)).astype(np.float32)
    keys[:, CHANNEL] *= np.float32(size)
    if scale == "channel":
        return fp4kv.dequantise(fp4kv.quantise_e2m1(keys.T)).T[0]
    if scale == "group":
        return fp4kv.dequantise(fp4kv.quantise_e2m1(keys[0]))
    return fp4kv.rotate_hadamard(fp4kv.dequantise(fp4kv.quantise_e2m1(fp4kv.rotate_hadamard(keys[0]))))


@pytest.fixture
def page(address, context):
    page = context.new_page()
    page.goto(f"{address}/outliers.html", wait_until="load")
    page.wait_for_selector("bad-channel .panel")
    return page


def test_figure_equals_library_at_every_step(page):
    seen = page.evaluate(EVERY_STATE)
    assert len(seen) == 3 * N_STEPS
    differing = []
    for state in seen:
        right = decoded_token(float(state["size"]), state["scale"])
        shown = np.array(json.loads(state["after"]))
        n_flushed = int((right[ORDINARY] == 0).sum())
        is_right = np.abs(shown - right).max() <= HALF_A_DIGIT and int(state["flushed"]) == n_flushed
        if not is_right or state["crosses"] != (right == 0).tolist():
            differing.append((state["scale"], state["size"]))
    assert not differing


def test_figure_shows_the_error_of_the_other_fifteen(page):
    keys = np.random.default_rng(7).normal(size=(N_CHANNELS, N_CHANNELS)).astype(np.float32)[0]
    for state in page.evaluate(EVERY_STATE):
        error = (decoded_token(float(state["size"]), state["scale"]) - keys)[ORDINARY]
        relative = np.linalg.norm(error) / np.linalg.norm(keys[ORDINARY])
        assert float(state["error"]) == pytest.approx(relative, abs=HALF_A_DIGIT)


def test_figure_is_driven_by_keys(page):
    page.evaluate("document.querySelector('bad-channel').set(40, 'group')")
    assert "15 of the other fifteen become zero" in page.inner_text("bad-channel .words")
    page.focus("bad-channel input[type=range]")
    page.keyboard.press("Home")
    assert page.get_attribute("bad-channel input[type=range]", "aria-valuetext") == "1.0 times"
    assert "2 of the other fifteen become zero" in page.inner_text("bad-channel .words")
    page.keyboard.press("End")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")  # from the group of the token to each channel
    assert page.evaluate("document.querySelector('bad-channel').scale") == "channel"
    assert "3 of the other fifteen become zero" in page.inner_text("bad-channel .words")


def test_figure_is_driven_by_a_pointer(page):
    page.get_by_text("the group, rotated").click()
    assert page.evaluate("document.querySelector('bad-channel').scale") == "rotated"
    slider = page.locator("bad-channel input[type=range]")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    page.mouse.click(box["x"] + box["width"] - 2, box["y"] + box["height"] / 2)
    assert page.evaluate("document.querySelector('bad-channel').dataset.size") == "100"


def test_figure_has_a_name_and_tells_what_it_shows(page):
    assert page.locator("bad-channel").get_by_role("img", name="Sixteen bars").count() == 1
    assert page.get_by_role("slider", name="Size of channel 5").count() == 1
    assert page.get_by_role("radio").count() == 3
    page.evaluate("document.querySelector('bad-channel').set(0)")
    page.wait_for_function("document.querySelector('bad-channel [aria-live]').textContent.includes('become zero')")


def test_numbers_of_the_figure_stand_in_a_table(page):
    page.locator("bad-channel summary").click()
    rows = page.locator("bad-channel tbody tr")
    assert rows.count() == 2
    assert rows.nth(0).locator("td").count() == N_CHANNELS


def test_figure_without_scripts_is_a_still_picture(address, chromium):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}/outliers.html")
    assert page.locator("bad-channel .still svg").is_visible()
    assert "Sixteen bars" in page.locator("bad-channel .still svg title").text_content()
    context.close()
