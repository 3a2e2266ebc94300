"""Checks of lab 2: points, inputs and expected values stand here and nowhere else.

A slip in one function costs once. The inputs for a later function therefore stay away from the traps of the
earlier ones that it calls: no ties and no value near 0.5 for E2M1, no ties and nothing below 2^-6 for E4M3,
unless the check is about them. Ties of quotients that float32 and float64 may see differently are kept away by
margins that are derived beside them; where a quotient is a tie here, it is one in either.
"""

from autograder.checks import Registry

from .benchmark import checks as benchmark
from .codes import checks as codes
from .debug import checks as debug
from .derive import checks as derive
from .groups import checks as groups
from .integers import checks as integers
from .scales import checks as scales
from .ways_back import checks as ways_back

checks = Registry(derive, codes, scales, groups, integers, ways_back, benchmark, debug)
