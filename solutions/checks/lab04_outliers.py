"""Checks of lab 4: points, inputs and expected values stand here and nowhere else.

A slip in one function costs once. Where a function may call an earlier one of the student's, either the inputs
stay away from what that one can get wrong (`split_outliers`: its outliers are far beyond any threshold), or the
answer may agree with the student's own earlier function (`attend_rotated`, `choose_scheme`). Inputs of checks that
compare codes keep clear of ties by margins that are derived beside them.
"""

from autograder.checks import Registry

from .centring import checks as centring
from .channels import checks as channels
from .choice import checks as choice
from .debug import checks as debug
from .derive import checks as derive
from .four_over_six import checks as four_over_six
from .granularity import checks as granularity
from .outliers import checks as outliers
from .rotation import checks as rotation

checks = Registry(derive, outliers, granularity, rotation, centring, four_over_six, channels, choice, debug)
