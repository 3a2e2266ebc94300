"""Plug the judge into nbgrader: its command, formgrader's button and our own end in the same `record`.

`nbgrader_config.py` of the project calls `configure`; `install` makes that file found from any folder.
nbgrader marks a notebook by the outputs that a kernel left in it, and no output is full marks. So
no step of that kind is left here: there is no list of preprocessors to get wrong, and a submission
that the judge has not decided enters nothing.
"""

import re
import sys
from pathlib import Path

from nbgrader.converters import Autograde
from nbgrader.converters.base import NbGraderException
from traitlets import List
from traitlets.config import Config

from autograder.authoring.stubs import configure_release
from autograder.course import PROJECT_MARK, Course
from autograder.display.pages import use_in_formgrader
from autograder.errors import AutograderError, CourseError

COURSE_ID = "fp4kv"
INSTALLED = "etc/jupyter/nbgrader_config.py"


def configure(config: Config, project: Path) -> None:
    """Set nbgrader's configuration for the course of a project.

    Folder names are nbgrader's own. The database is SQLite in the course's folder; set
    `c.CourseDirectory.db_url` after this call for another.
    """
    config.CourseDirectory.root = str(project / "course")
    config.CourseDirectory.course_id = COURSE_ID
    config.GenerateFeedback.exporter_class = "autograder.display.pages.InertExporter"
    config.ExportApp.plugin_class = "autograder.gradebook.nbgrader_export.BlankExport"
    configure_release(config)
    use_the_judge()
    use_in_formgrader()


def use_the_judge() -> None:
    """Put our converter where nbgrader's command and formgrader's button look theirs up."""
    import nbgrader.apps.api
    import nbgrader.apps.autogradeapp

    for module in (nbgrader.apps.api, nbgrader.apps.autogradeapp):
        module.Autograde = JudgedAutograde


def install(prefix: Path = Path(sys.prefix), project: Path | None = None) -> Path:
    """Make nbgrader find a project's configuration from any folder; return the file that does it.

    Raises
    ------
    CourseError
        If the project has no configuration, or a file of somebody else's stands in the way.
    """
    home = (project or Course.find().project).resolve()
    if not (home / PROJECT_MARK).is_file():
        raise CourseError(f"project: expected {PROJECT_MARK} in {home}, found none")
    target = prefix / INSTALLED
    text = f'# Written by the autograder.\nload_subconfig("{PROJECT_MARK}", path={str(home)!r})  # noqa: F821\n'
    if target.exists() and not target.read_text(encoding="utf-8").startswith("# Written by the autograder."):
        raise CourseError(
            f"{target}: expected a file of ours or none, found another; add its settings to ours, move it"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return target


class JudgedAutograde(Autograde):  # type: ignore[misc]  # nbgrader has no types
    """nbgrader's autograde with our intake, sandbox, judge and gradebook."""

    sanitize_preprocessors = List([])
    autograde_preprocessors = List([])

    def init_notebooks(self) -> None:
        """List every submission that is asked for, whatever it holds: intake finds its notebook."""
        asked = self.coursedir.format_path(
            self.coursedir.submitted_directory, self.coursedir.student_id, self.coursedir.assignment_id
        )
        root = Path(self.coursedir.root)
        name = self.coursedir.assignment_id
        folders = sorted(root.glob(str(Path(asked).relative_to(root))))
        self.assignments = {str(folder): [str(folder / f"{name}.ipynb")] for folder in folders}
        self.notebooks: list[str] = []
        self.failures: list[str] = []
        if not self.assignments:
            raise NbGraderException(f"No submissions were matched by '{asked}'")

    def init_destination(self, assignment_id: str, student_id: str) -> bool:
        """Tell whether a submission is to be graded; nothing is removed, `record` replaces it."""
        if student_id in self.coursedir.student_id_exclude.split(","):
            return False
        here = self._format_source(assignment_id, student_id)
        there = self.coursedir.format_path(self._output_directory, student_id, assignment_id)
        handed_in, graded = map(self.coursedir.get_existing_timestamp, (here, there))
        is_newer = handed_in is not None and (graded is None or handed_in > graded)
        wanted = self.force or is_newer or not Path(there, f"{assignment_id}.ipynb").exists()
        if not wanted:
            self.log.info("Skipping existing assignment: %s", there)
        return wanted

    def init_assignment(self, assignment_id: str, student_id: str) -> None:
        """Copy nothing: what a student put beside the notebook is not for formgrader to serve."""

    def convert_single_notebook(self, notebook_filename: str) -> None:
        """Grade the submission that the notebook belongs to, and record what came of it."""
        about = self.init_single_notebook_resources(notebook_filename)["nbgrader"]
        student, lab = about["student"], about["assignment"]
        try:
            reason = self._grade(Path(notebook_filename).parent, student, lab)
        except AutograderError as error:
            reason = str(error)
        if reason:
            self.log.error("%s, %s: not graded: %s", student, lab, reason)
            self.failures.append(student)

    def convert_notebooks(self) -> None:
        """Grade them all; then say whose submission was not graded."""
        super().convert_notebooks()
        if self.failures:
            raise NbGraderException(f"Not graded, the reasons are above: {', '.join(self.failures)}")

    def _grade(self, folder: Path, student: str, lab_name: str) -> str:
        """Return why the submission was not graded, empty if it was."""
        from autograder.gradebook.entrance import grade_folder  # the judge and its parts, only when something is graded

        course = Course.find(self.coursedir.root)
        outcome = grade_folder(course, lab_name, student, folder, directory=self.coursedir, config=self.config)
        self.log.info("%s, %s: %s, %g of %g points", student, lab_name, outcome.state, outcome.score, outcome.max_score)
        return outcome.reason


def main() -> None:
    """Install for the project in which this is called: `python -m autograder.gradebook.plugin`."""
    sys.stdout.write(f"nbgrader reads {install()}\n")


def is_installed(prefix: Path = Path(sys.prefix)) -> bool:
    """Tell whether `nbgrader` uses the judge from any folder."""
    target = prefix / INSTALLED
    return target.is_file() and re.search(PROJECT_MARK, target.read_text(encoding="utf-8")) is not None


if __name__ == "__main__":
    main()
