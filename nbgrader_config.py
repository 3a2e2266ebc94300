"""Folder names and plug-ins, so that plain `nbgrader` commands and formgrader grade through the judge."""

from pathlib import Path

from autograder.gradebook.plugin import configure

c = get_config()  # noqa: F821  (traitlets defines it while it reads this file)

configure(c, project=Path(__file__).resolve().parent)
