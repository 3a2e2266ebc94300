"""Submissions from a zip as Canvas or Moodle makes it.

A zip is untrusted: nothing is extracted by its own name. A file goes to the student whose number in
the LMS its name carries, under its last part; links, encrypted and oversize files are refused, and no
more is unpacked than a submission may have. The shapes of the names are read from public code and
documents of both systems.
"""

import re
import stat
import tempfile
import unicodedata
import zipfile
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath

from autograder.classroom.collect import TIMESTAMP_FILE, Collection, due_date, students_by_lms_id
from autograder.course import Course
from autograder.errors import UsageError
from autograder.intake.folder import IGNORED_NAMES, MAX_FILE_BYTES, MAX_FILES, MAX_NOTEBOOK_BYTES, MAX_TOTAL_BYTES

MAX_ZIP_ENTRIES = 50_000
MAX_ZIP_BYTES = 16 << 30
ZIP_EPOCH_YEAR = 1980
"""What a zip says that has no time: its clock starts there."""

# lovelaceada_[LATE_]<user>_<attachment>_lab02_formats[-<resubmission>].ipynb
CANVAS = re.compile(
    r"[^/_]+_(?P<late>LATE_)?(?P<lms>\d+)_(?P<attachment>\d+)_(?P<name>[^/]+?)(?:-(?P<attempt>\d+))?(?P<suffix>\.\w+)"
)
# Ada Lovelace_<participant>_assignsubmission_file[_][/]lab02_formats.ipynb
MOODLE = re.compile(r"(?:.*/)?[^/]*_(?P<lms>\d+)_assignsubmission_file(?:_/|_|/)(?P<name>[^/]+?)(?P<suffix>\.\w+)")


@dataclass(frozen=True)
class Attempt:
    """One file of one student in a zip; the greater `order` is the later attempt."""

    entry: zipfile.ZipInfo
    lms_id: str
    name: str
    order: tuple[int, int]
    late: bool

    @property
    def submitted_at(self) -> datetime | None:
        """When it was handed in, by the zip's own clock taken as UTC; None if the zip has no time."""
        try:
            moment = datetime(*self.entry.date_time, tzinfo=UTC)
        except ValueError:
            return None
        return moment if moment.year > ZIP_EPOCH_YEAR else None


def from_zip(course: Course, lab: str, path: Path) -> Collection:
    """Write the latest attempt of each student in a Canvas or Moodle zip to course/submitted.

    Raises
    ------
    UsageError
        If the file is no zip, or is beyond what a class can hand in.
    """
    found = Collection()
    students = students_by_lms_id(course)
    due = due_date(course, lab)
    with _open(path) as archive:
        for lms_id, attempts in sorted(_by_student(archive, found).items()):
            student = students.get(lms_id)
            if student is None:
                reason = f"expected an lms_user_id of the gradebook, got {lms_id}; run: autograder roster CSV"
                found.refused += [(attempt.entry.filename, reason) for attempt in attempts]
                continue
            _collect_one(archive, course.submitted / student / lab, student, attempts, due, found)
    return found


def parse_name(entry: zipfile.ZipInfo) -> Attempt | None:
    """Return who handed a zip's entry in, by its name; None if no LMS names files so.

    >>> parse_name(zipfile.ZipInfo("lovelaceada_LATE_4711_902_lab02_formats-2.ipynb")).name
    'lab02_formats.ipynb'
    """
    name = unicodedata.normalize("NFC", entry.filename.replace("\\", "/"))
    if match := MOODLE.fullmatch(name):
        return Attempt(entry, match["lms"], match["name"] + match["suffix"], (0, 0), late=False)
    if match := CANVAS.fullmatch(PurePosixPath(name).name):
        order = (int(match["attempt"] or 0), int(match["attachment"]))
        return Attempt(entry, match["lms"], match["name"] + match["suffix"], order, late=bool(match["late"]))
    return None


def _open(path: Path) -> zipfile.ZipFile:
    try:
        archive = zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile) as error:
        raise UsageError(f"ZIP: expected a zip of submissions, got {path}: {error}") from None
    entries = archive.infolist()
    size = sum(entry.file_size for entry in entries)
    if len(entries) > MAX_ZIP_ENTRIES or size > MAX_ZIP_BYTES:
        archive.close()
        raise UsageError(
            f"ZIP: expected at most {MAX_ZIP_ENTRIES} files and {MAX_ZIP_BYTES >> 30} GiB, "
            f"got {len(entries)} and {size} bytes"
        )
    return archive


def _by_student(archive: zipfile.ZipFile, found: Collection) -> dict[str, list[Attempt]]:
    attempts = defaultdict(list)
    for entry in archive.infolist():
        if entry.is_dir() or _is_litter(entry.filename):
            continue
        attempt = parse_name(entry)
        if reason := _why_refused(entry, attempt):
            found.refused.append((entry.filename, reason))
        elif attempt:
            attempts[attempt.lms_id].append(attempt)
    return attempts


def _is_litter(name: str) -> bool:
    return any(
        part.startswith(".") or part in IGNORED_NAMES for part in PurePosixPath(name).parts if part not in ("..", ".")
    )


def _why_refused(entry: zipfile.ZipInfo, attempt: Attempt | None) -> str:
    """Return why an entry cannot be taken; empty if it can."""
    if attempt is None:
        return "expected a name as Canvas or Moodle give it"
    if stat.S_ISLNK(entry.external_attr >> 16):
        return "expected a plain file, got a link"
    if entry.flag_bits & 1:
        return "expected a plain file, got an encrypted one"
    if not attempt.name.isprintable() or attempt.name.startswith(".") or attempt.name in (TIMESTAMP_FILE, "..", "."):
        return "expected a printable file name that is not hidden"
    limit = _limit(attempt.name)
    return f"expected at most {limit >> 20} MiB, got {entry.file_size >> 20} MiB" if entry.file_size > limit else ""


def _limit(name: str) -> int:
    return MAX_NOTEBOOK_BYTES if name.endswith(".ipynb") else MAX_FILE_BYTES


def _collect_one(
    archive: zipfile.ZipFile,
    folder: Path,
    student: str,
    attempts: list[Attempt],
    due: datetime | None,
    found: Collection,
) -> None:
    latest = {attempt.name: attempt for attempt in sorted(attempts, key=lambda attempt: attempt.order)}
    moment = _moment(latest.values(), due)
    held = _timestamp(folder)
    if moment and held and held > moment:
        found.refused.append((student, f"expected an attempt after the one collected, of {held}, got one of {moment}"))
        return
    files: dict[str, bytes] = {}
    for name, attempt in latest.items():
        try:
            files[name] = _read(archive, attempt, room=MAX_TOTAL_BYTES - sum(map(len, files.values())))
        except (ValueError, RuntimeError, NotImplementedError, zipfile.BadZipFile, OSError, EOFError) as error:
            found.refused.append((attempt.entry.filename, f"expected a readable file, got {error}"))
    if len(files) > MAX_FILES:
        found.refused.append((student, f"expected at most {MAX_FILES} files, got {len(files)}"))
    elif files:
        _write(folder, files, moment)
        found.collected.append(student)


def _read(archive: zipfile.ZipFile, attempt: Attempt, room: int) -> bytes:
    """Return a file's bytes, never more than it may have, whatever the zip claims of its size."""
    limit = min(_limit(attempt.name), room)
    with archive.open(attempt.entry) as source:
        data = source.read(limit + 1)
    if len(data) > limit:
        raise ValueError(f"more than {limit} bytes")
    return data


def _moment(attempts: Iterable[Attempt], due: datetime | None) -> datetime | None:
    """Return when the latest file came; after the due date where the LMS says that it was late."""
    attempts = list(attempts)
    moment = max((attempt.submitted_at for attempt in attempts if attempt.submitted_at), default=None)
    if due and any(attempt.late for attempt in attempts):
        return max(moment or due, due + timedelta(seconds=1))
    return moment


def _write(folder: Path, files: dict[str, bytes], moment: datetime | None) -> None:
    """Put a submission in place of an earlier one, whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".collect-", dir=folder.parent) as room:
        fresh = Path(room, "new")
        fresh.mkdir()
        for name, data in files.items():
            (fresh / name).write_bytes(data)
        if moment:
            (fresh / TIMESTAMP_FILE).write_text(f"{moment:%Y-%m-%d %H:%M:%S.%f} UTC\n")
        if folder.exists() or folder.is_symlink():
            folder.rename(Path(room, "old"))
        fresh.rename(folder)


def _timestamp(folder: Path) -> datetime | None:
    """Return when the submission held in a folder came, if it says so."""
    path = folder / TIMESTAMP_FILE
    if not path.is_file():
        return None
    text = path.read_text(encoding="utf-8", errors="replace").strip().removesuffix(" UTC")
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        return None
