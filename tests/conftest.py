"""What every test shares: the project's folders and a seed that depends on the test alone."""

import gc
import hashlib
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from playwright.sync_api import Browser, sync_playwright

PROJECT = Path(__file__).resolve().parents[1]
CHROMIUM = "/usr/bin/chromium"
QUIET = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
# Sandboxes' environments take half a minute to build and depend on pins alone: one set serves every test course.
os.environ.setdefault("AUTOGRADER_ENVIRONMENTS", str(PROJECT / ".cache" / "environments"))

settings.register_profile("search", deadline=None)  # a busy machine is slow, not wrong
settings.register_profile("ci", settings.get_profile("search"), derandomize=True)  # in CI the same cases each time
settings.load_profile("ci" if os.environ.get("CI") else "search")


@pytest.fixture(scope="session")
def project() -> Path:
    """The checkout under test."""
    return PROJECT


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A generator seeded from the test's name: the same alone, in any order, on any worker."""
    digest = hashlib.sha256(request.node.nodeid.encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "big"))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser for the tests of one module: while it is there, no other event loop can run in this thread."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # playwright leaves its pipes to the garbage collector
        gc.collect()
