"""The live number line says what the library says, with a mouse, a keyboard, or no script at all."""

import fp4kv
import numpy as np
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(600), pytest.mark.xdist_group("book")]

LIMIT, PER_UNIT = 7, 20  # the slider goes from -7 to 7 in steps of 1/20: all 14 ties are positions
EVERY_POSITION = """() => {
    const line = document.querySelector("e2m1-number-line"), seen = [];
    for (let step = -140; step <= 140; step++) {
        line.set(step / 20);
        seen.push([step / 20, Number(line.dataset.value), Number(line.dataset.code)]);
    }
    return seen;
}"""
NEGATIVE_ZERO = 8


@pytest.fixture
def page(address, context):
    page = context.new_page()
    page.goto(f"{address}/formats.html", wait_until="load")
    page.wait_for_selector("e2m1-number-line .panel")
    return page


def test_number_line_equals_library_at_every_position(page):
    seen = page.evaluate(EVERY_POSITION)
    positions = np.array([x for x, _, _ in seen])
    assert len(positions) == 2 * LIMIT * PER_UNIT + 1
    codes = fp4kv.encode_e2m1(positions)
    codes[codes == NEGATIVE_ZERO] = 0  # the line has one zero
    differing = [
        (x, value, code)
        for (x, value, code), right in zip(seen, codes, strict=True)
        if code != right or value != fp4kv.decode_e2m1(right[None])[0]
    ]
    assert not differing


def test_number_line_shows_the_bits_of_the_code(page):
    page.evaluate("document.querySelector('e2m1-number-line').set(-2.6)")
    assert page.inner_text("e2m1-number-line .bits").split() == ["1", "1", "0", "1"]
    assert "0b1_10_1" in page.inner_text("e2m1-number-line .words")


def test_number_line_is_driven_by_keys(page):
    page.evaluate("document.querySelector('e2m1-number-line').set(2.4)")
    page.focus("e2m1-number-line input")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    words = page.inner_text("e2m1-number-line .words")
    assert words.startswith("2.5 is halfway between 2 and 3: a tie")
    assert page.get_attribute("e2m1-number-line input", "aria-valuetext").startswith("2.5 is halfway")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the button for the next tie
    assert page.evaluate("document.querySelector('e2m1-number-line').value") == 3.5


def test_number_line_is_driven_by_a_pointer(page):
    page.locator("e2m1-number-line svg").scroll_into_view_if_needed()
    box = page.locator("e2m1-number-line svg").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.up()
    assert page.evaluate("document.querySelector('e2m1-number-line').value") == 0


def test_number_line_without_scripts_is_a_still_picture(address, chromium):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}/formats.html")
    assert page.locator("e2m1-number-line .still svg").is_visible()
    assert "fifteen values" in page.locator("e2m1-number-line .still svg title").text_content()
    context.close()
