"""What is known about one graded submission: `outcome.json`, described by `outcome.schema.json`."""

import json
import os
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

from autograder.errors import CourseError

STATUSES = ("passed", "failed", "skipped", "timed_out", "crashed", "out_of_memory", "not_run")
SCHEMA_FILE = Path(__file__).with_name("outcome.schema.json")


@dataclass
class CheckResult:
    """The verdict of one check. `points` are decided here and nowhere else."""

    id: str
    points: float
    max_points: float
    status: str
    message: str = ""
    seconds: float = 0.0


@dataclass
class Outcome:
    """The verdict on one submission, or the reason why there is none.

    `state` is "graded" or "not_graded". Not graded is never a zero: it carries its `reason`
    and `fault`: "submission" (nothing readable came) or "infrastructure" (ours: grade again).
    """

    student: str
    lab: str
    hash: str
    lab_version: str
    state: str
    checks: list[CheckResult] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    suspicions: list[str] = field(default_factory=list)
    reason: str = ""
    fault: str = ""
    seconds: float = 0.0
    graded_at: str = ""
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def score(self) -> float:
        """The sum of the points given."""
        return sum(check.points for check in self.checks)

    @property
    def max_score(self) -> float:
        """The sum of the points to be had."""
        return sum(check.max_points for check in self.checks)

    def to_json(self) -> str:
        """Return the outcome as text that the schema accepts; the sums are repeated for readers."""
        document = asdict(self) | {"score": self.score, "max_score": self.max_score, "schema_version": 1}
        _validator().validate(document)
        return json.dumps(document, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> "Outcome":
        """Return the outcome that `to_json` wrote.

        Raises
        ------
        CourseError
            If the text is not such an outcome.
        """
        try:
            document: dict[str, Any] = json.loads(text)
            _validator().validate(document)
        except (ValueError, jsonschema.ValidationError) as error:
            raise CourseError(f"outcome.json: expected a document of the schema, got {str(error)[:200]}") from None
        for derived in ("score", "max_score", "schema_version"):
            document.pop(derived)
        document["checks"] = [CheckResult(**check) for check in document["checks"]]
        return cls(**document)

    def write(self, path: Path) -> None:
        """Write the outcome so that a reader sees the old file or the new one, never half."""
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
        temporary.write_text(self.to_json(), encoding="utf-8")
        temporary.replace(path)


def load_schema() -> dict[str, Any]:
    """Return the JSON schema of `outcome.json`."""
    schema: dict[str, Any] = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    return schema


@cache
def _validator() -> jsonschema.Draft202012Validator:
    """Return the schema ready for use: to check the schema itself again costs more than a document."""
    return jsonschema.Draft202012Validator(load_schema())
