"""What looks like an attempt on the grader is told to a person; what the lab allows does not."""

import pytest
from nbformat import v4

from autograder.checks import Registry
from autograder.judging.judge import suspicions_of
from autograder.lab import Header, Lab
from autograder.limits import Limits


@pytest.mark.parametrize(
    ("packages", "source", "found"),
    [
        (("numpy",), "import ml_dtypes", ["cell 1 mentions ml_dtypes"]),
        (("numpy", "ml-dtypes"), "import ml_dtypes", []),
        (("numpy", "ml-dtypes"), "import ml_dtypes, fp4kv", ["cell 1 mentions fp4kv"]),
        (("numpy",), "import numpy", []),
    ],
)
def test_package_is_suspicious_only_where_the_lab_does_not_list_it(packages, source, found):
    lab = Lab("lab03_small", Header("Small lab", packages, 5, 5.0, Limits()), Registry(), v4.new_notebook(), {})
    assert suspicions_of(v4.new_notebook(cells=[v4.new_code_cell(source)]), lab) == found
