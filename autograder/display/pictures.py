"""Pictures of a submission: kept if they are what they say, written anew, without anything that could run.

Pages show them as `<img>` with the bytes in the page, where even a drawing's scripts and links are dead;
they are taken out all the same, because a judged notebook is opened elsewhere too.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

import defusedxml
from defusedxml.ElementTree import fromstring

SIGNATURES = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
}
"""What a file of each raster format begins with."""

SVG = "image/svg+xml"
SVG_SPACE, LINK_SPACE = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
MAX_SVG_CHARACTERS = 4 << 20
DRAWING = frozenset(
    [
        *("svg", "g", "defs", "use", "symbol", "clipPath", "mask", "marker", "pattern", "style", "title", "desc"),
        *("path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text", "tspan", "textPath"),
        *("linearGradient", "radialGradient", "stop", "filter", "feGaussianBlur", "feOffset", "feBlend", "image"),
    ]
)
"""The elements of a drawing. Others are taken out: scripts, foreign content, animation, links, metadata."""

ElementTree.register_namespace("", SVG_SPACE)
ElementTree.register_namespace("xlink", LINK_SPACE)


def pictures(data: Mapping[str, Any]) -> dict[str, str]:
    """Return the parts of an output that are pictures, in the form that nbformat keeps them."""
    drawing = _drawing(data.get(SVG))
    return rasters(data) | ({SVG: drawing} if drawing else {})


def rasters(data: Mapping[str, Any]) -> dict[str, str]:
    """Return the parts of an output or an attachment that are raster pictures."""
    return {mime: picture for mime in SIGNATURES if (picture := _raster(data.get(mime), mime))}


def _raster(encoded: Any, mime: str) -> str | None:
    """Return a picture's base64 text, or None if its bytes are something else."""
    if not isinstance(encoded, str):
        return None
    try:
        raw = base64.b64decode(encoded)
    except (binascii.Error, ValueError):
        return None
    return base64.b64encode(raw).decode("ascii") if raw.startswith(SIGNATURES[mime]) else None


def _drawing(text: Any) -> str | None:
    """Return an SVG with nothing in it but a drawing, or None if it is none."""
    if not isinstance(text, str) or len(text) > MAX_SVG_CHARACTERS:
        return None
    try:
        root = fromstring(text.encode("utf-8", "replace"), forbid_entities=True, forbid_external=True)
        if root.tag != f"{{{SVG_SPACE}}}svg":
            return None
        _clean(root)
        return str(ElementTree.tostring(root, encoding="unicode"))
    except (ElementTree.ParseError, defusedxml.DefusedXmlException, RecursionError, ValueError, LookupError):
        return None


def _clean(element: ElementTree.Element) -> None:
    for name, value in list(element.attrib.items()):
        plain = name.rpartition("}")[2].lower()
        is_reference = plain in ("href", "src") and not value.startswith(("#", "data:image/png;base64,"))
        if plain.startswith("on") or is_reference:
            del element.attrib[name]
    if element.tag == f"{{{SVG_SPACE}}}style" and any(
        word in (element.text or "").lower() for word in ("@import", "url(")
    ):
        element.text = ""
    for child in list(element):
        space, _, name = child.tag.rpartition("}") if isinstance(child.tag, str) else ("", "", "")
        if space == f"{{{SVG_SPACE}" and name in DRAWING:
            _clean(child)
        else:
            element.remove(child)
