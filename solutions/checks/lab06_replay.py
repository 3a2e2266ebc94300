"""Checks of lab 6: points, inputs and expected values stand here and nowhere else.

A slip in one function costs once. Where a function calls an earlier one of the student's, an answer that agrees with
the student's own earlier function is right too (`bounded_replay`, `exact_replay`, `choose_policy`). Networks and
engines are lent: every call of theirs is made here, and counted. Where positions begin counts in one check alone, and
so does the number of rows: elsewhere they are compared from the last one back.
"""

from autograder.checks import Registry

from .bound import checks as bound
from .bounded import checks as bounded
from .costs import checks as costs
from .debug import checks as debug
from .derive import checks as derive
from .estimate import checks as estimate
from .exact import checks as exact
from .index import checks as index
from .mask import checks as mask
from .policy import checks as policy

checks = Registry(derive, mask, bounded, exact, index, bound, estimate, costs, policy, debug)
