"""The built pages: self-contained, light, whole, readable at every width."""

import gzip
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup
from pictures import inline

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.xdist_group("book")]

# Pages that a reader opens; search and the index are the theme's own.
PAGES = sorted(path.stem for path in (Path(__file__).resolve().parents[2] / "book").glob("*.md"))
LARGEST_PAGE_BYTES = 450 * 1000  # what the house allows a page to transfer, compressed as every web server does
COMPRESSED = re.compile(r"text/|javascript|json|svg|xml")
# Where a page may load something from; a link that a reader follows is no load.
LOADING = {"script": "src", "img": "src", "link": "href", "source": "src", "iframe": "src", "object": "data"}
OTHER_HOST = re.compile(r"^(?:https?:)?//")
CSS_URL = re.compile(r"url\(\s*['\"]?([^)'\"]+)|@import\s+['\"]([^'\"]+)")

EVERY_FRAME = """() => {
    window.frames_seen = [];
    const look = () => {
        if (document.body) {
            const root = document.documentElement;
            frames_seen.push([getComputedStyle(root).fontSize, root.dataset.theme]);
        }
        requestAnimationFrame(look);
    };
    look();
}"""


def soup_of(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def html_files(built: Path) -> list[Path]:
    return sorted(path for path in built.rglob("*.html") if "_static" not in path.parts)


def test_every_source_has_a_page(built):
    assert sorted(path.stem for path in built.glob("*.html") if path.stem not in {"genindex", "search"}) == PAGES


def test_pages_name_no_other_host_to_load_from(built):
    named = [
        f"{path.name}: {tag[attribute]}"
        for path in html_files(built)
        for name, attribute in LOADING.items()
        for tag in soup_of(path).find_all(name, **{attribute: OTHER_HOST})
        if "canonical" not in tag.get("rel", [])
    ]
    assert not named


def test_styles_load_only_files_that_are_there(built):
    sheet = built / "_static" / "bundle.css"
    urls = [first or second for first, second in CSS_URL.findall(sheet.read_text(encoding="utf-8"))]
    urls = [url for url in urls if not url.startswith(("data:", "#", "%23"))]
    assert urls, "expected the fonts at least"
    missing = [url for url in urls if OTHER_HOST.match(url) or not (sheet.parent / url.split("?")[0]).is_file()]
    assert not missing


def test_internal_links_lead_somewhere(built):
    ids = {path: {tag["id"] for tag in soup_of(path).find_all(id=True)} for path in html_files(built)}
    broken = []
    for path in html_files(built):
        for link in soup_of(path).find_all("a", href=True):
            parts = urlsplit(link["href"])
            if parts.scheme or not link["href"].strip("#"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file() or (parts.fragment and target in ids and parts.fragment not in ids[target]):
                broken.append(f"{path.name}: {link['href']}")
    assert not broken


def test_lab_can_be_downloaded_as_it_is_released(built, project):
    link = soup_of(built / "lab02.html").find("a", class_="download")
    released = project / "labs" / "lab02_formats" / "lab02_formats.ipynb"
    assert (built / link["href"]).read_bytes() == released.read_bytes()


def test_mathematics_is_rendered_at_build(built):
    page = soup_of(built / "formats.html")
    assert len(page.select(".math .katex")) > 50
    assert not page.select("script[src*=mathjax], script[src*=katex]")
    assert not page.select(".katex-error")


def test_licences_stand_beside_fonts(built):
    static = built / "_static"
    for folder in ("fonts", "icons", "katex"):
        texts = [
            path.read_text(encoding="utf-8")
            for path in (static / folder).glob("*")
            if path.suffix in {"", ".txt"} and path.is_file()
        ]
        assert any("Copyright" in text for text in texts), f"{folder}: no licence"


def test_pages_name_their_parts_for_screen_readers(built):
    for path in html_files(built):
        page = soup_of(path)
        nameless = [str(tag)[:120] for tag in page.find_all("img") if not tag.get("alt")]
        drawn = [
            tag for tag in page.select("article svg") if not tag.find_parent(class_="katex")
        ]  # roots are drawn too
        nameless += [str(tag)[:120] for tag in drawn if tag.get("role") != "img" or not tag.title]
        nameless += [
            str(tag)[:120]
            for tag in page.find_all("button")
            if not (tag.get_text(strip=True) or tag.get("aria-label") or tag.get("title"))
        ]
        assert not nameless, path.name
        assert len(page.find_all("main")) == 1
        assert page.html["lang"].startswith("en")
        assert page.find("meta", attrs={"name": "viewport"})


def test_no_figure_is_drawn_wider_than_its_words_allow(built):
    """Words of 11 points stay above 10 pixels in a figure of 5.2 inches on 400 pixels, and no wider one."""
    widest = 72 * (inline.WIDTH_INCHES + 2 * 0.1)  # matplotlib's edge around a tight box
    for path in html_files(built):
        for drawn in soup_of(path).select(".course-plot svg"):
            assert float(drawn["viewbox"].split()[2]) <= widest + 1, (path.name, drawn.title.text[:60])


def test_every_page_describes_itself(built):
    lacking = [
        name for name in PAGES if not soup_of(built / f"{name}.html").find("meta", attrs={"name": "description"})
    ]
    assert not lacking


def test_list_for_other_readers_names_every_page(built):
    text = (built / "llms.txt").read_text(encoding="utf-8")
    assert [name for name in PAGES if f"({name}.md)" not in text or not (built / f"{name}.md").is_file()] == []


@pytest.mark.browser
@pytest.mark.parametrize("name", PAGES)
def test_page_loads_from_its_own_host_alone_and_is_light(address, context, name):
    outside, sizes, errors = [], {}, []

    def watch(route):
        if route.request.url.startswith((address, "data:", "blob:")):
            route.continue_()
        else:
            outside.append(route.request.url)
            route.abort()

    def weigh(response):
        if response.url.startswith(address):
            body = response.body()
            kind = response.headers.get("content-type", "")
            sizes[response.url] = len(gzip.compress(body) if COMPRESSED.search(kind) else body)

    page = context.new_page()
    context.route("**/*", watch)
    page.on("response", weigh)
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{address}/{name}.html", wait_until="networkidle")
    assert outside == []
    assert [error for error in errors if "favicon" not in error] == []
    assert sum(sizes.values()) < LARGEST_PAGE_BYTES, sorted(sizes.items(), key=lambda item: -item[1])[:5]


@pytest.mark.browser
@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_pages_fit_the_width(address, chromium, width, colours):
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=colours)
    page = context.new_page()
    overflowing = {}
    for name in PAGES:
        page.goto(f"{address}/{name}.html", wait_until="load")
        overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        shown = page.evaluate("document.documentElement.dataset.theme")
        assert shown == colours, f"{name} ignores the reader's choice of colours"
        if overflow > 0:
            overflowing[name] = overflow
    context.close()
    assert overflowing == {}


@pytest.mark.browser
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_size_and_colours_hold_from_the_first_frame(address, chromium, colours):
    context = chromium.new_context(viewport={"width": 400, "height": 800}, color_scheme=colours)
    page = context.new_page()
    page.add_init_script(f"({EVERY_FRAME})()")
    page.goto(f"{address}/formats.html", wait_until="networkidle")
    frames = page.evaluate("frames_seen")
    context.close()
    assert len(frames) > 3, "expected frames before and after the scripts ran"
    assert {tuple(frame) for frame in frames} == {tuple(frames[-1])}
    assert frames[-1][1] == colours
