"""Hidden checks of lab 2: points, inputs and expected values stand here and nowhere else."""

import fp4kv
import numpy as np
from labkit import formats
from labkit.expect import expect_codes, expect_raises

from autograder.checks import Registry

checks = Registry()
check = checks.check


@check("tie_codes-even", points=2, catches="sends a tie to the odd code", per_student=False)
def each_tie_goes_to_the_even_neighbour(student, cases):
    """Each of the seven ties goes to the even one of its two neighbours."""
    expect_codes(np.uint8(student.tie_codes()), np.uint8([0, 2, 2, 4, 4, 6, 6]), given=formats.E2M1_TIES)


@check("encode_e2m1-ties", points=2, catches="rounds ties away from zero")
def ties_go_to_the_even_code(student, cases):
    """A value halfway between two codes goes to the even one."""
    x = np.concatenate([formats.E2M1_TIES, -formats.E2M1_TIES])
    expect_codes(student.encode_e2m1(x), fp4kv.encode_e2m1(x), given=x)


@check("encode_e2m1-refuses", points=1, catches="gives NaN or infinity a code")
def what_has_no_code_is_refused(student, cases):
    """NaN and infinity are refused with a ValueError that names the index."""
    x = cases.rng.normal(size=9).astype(np.float32)
    x[5] = np.nan
    expect_raises(ValueError, student.encode_e2m1, x, naming="5")
