"""What every test shares: the project's folders and a seed that depends on the test alone."""

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

PROJECT = Path(__file__).resolve().parents[1]
# Sandboxes' environments take half a minute to build and depend on pins alone: one set serves every test course.
os.environ.setdefault("AUTOGRADER_ENVIRONMENTS", str(PROJECT / ".cache" / "environments"))


@pytest.fixture(scope="session")
def project() -> Path:
    """The checkout under test."""
    return PROJECT


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A generator seeded from the test's name: the same alone, in any order, on any worker."""
    digest = hashlib.sha256(request.node.nodeid.encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "big"))
