"""Checks of lab 3: points, inputs and expected values stand here and nowhere else.

A slip in one function costs once. Weights are asked for with keys one channel wide, where √D is 1, except by the check
that is about √D. Caches are made of codes 1 to 3, whose cells have one radius and one sign, except where a check is
about the others; the largest element of a group stands in a channel that the query does not look at. Where that is
not enough, an answer that agrees with the student's own earlier functions passes too: their slip is paid for.

Errors are those of a real round trip: keys and values are quantised by the reference, and the true output is taken
from what they were before.
"""

from autograder.checks import Registry

from .attention import checks as attention
from .benchmark import checks as benchmark
from .bounds import checks as bounds
from .debug import checks as debug
from .derive import checks as derive
from .estimate import checks as estimate
from .outputs import checks as outputs
from .radii import checks as radii

checks = Registry(derive, attention, radii, bounds, outputs, estimate, benchmark, debug)
