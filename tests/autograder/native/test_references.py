"""The course's own kernels, run as the judge runs a student's."""

import numpy as np
import pytest
from fp4kv.kernel_cases import adversarial_groups, attention_cases
from fp4kv.kernel_tolerance import decode_attention_tolerance
from fp4kv.kernels import DECODE_ATTENTION, QUANTISE_PACK, decode_attention, quantise_pack
from labkit.expect import expect_bytes, expect_close
from labkit.launches import plan_decode_attention, plan_quantise_pack

from autograder.course import Course
from autograder.judging.environments import environment_for
from autograder.limits import Limits
from autograder.native.runs import Native

pytestmark = pytest.mark.sandbox


@pytest.fixture(scope="module")
def native(project, tmp_path_factory) -> Native:
    course = Course(tmp_path_factory.mktemp("course"), project)
    prefix = environment_for(course, ("numpy", "matplotlib", "jaxtyping"), "lab02_formats")
    return Native(prefix, Limits(), "bubblewrap", lambda: 240.0, 20.0)


def test_quantise_pack_is_equal_to_the_bit_in_every_order(native):
    x = np.ascontiguousarray(adversarial_groups()[::7])
    launch, (packed, scales) = plan_quantise_pack(x)
    expected_packed, expected_scales = quantise_pack(x)
    runs = native.run(QUANTISE_PACK, launch, orders=4)
    assert [run.order for run in runs[:2]] == [0, 1] and len({run.order for run in runs}) == 4
    for run in runs:
        expect_bytes(run[packed], expected_packed, given=x)
        expect_bytes(run[scales], expected_scales, given=x)
        assert x.nbytes < run.traffic[0].global_bytes <= run.traffic[0].moved_bytes < 2 * x.nbytes


def test_two_launches_share_their_arrays(native):
    """Attention leaves parts, which the second kernel of the same source combines."""
    case = next(iter(attention_cases(np.random.default_rng(5))))
    launches, output = plan_decode_attention(*case)
    (run,) = native.run(DECODE_ATTENTION, launches)
    expect_close(run[output], decode_attention(*case[:6]), decode_attention_tolerance(case), given="an attention case")
    assert [traffic.global_bytes > 0 for traffic in run.traffic] == [True, True]
    assert np.isnan(output).all(), "the judge's own array was written"
