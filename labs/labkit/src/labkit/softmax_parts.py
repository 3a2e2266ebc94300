"""What online softmax keeps of a part of a context, so that parts can be put together later."""

from typing import NamedTuple

from jaxtyping import Float64
from numpy import ndarray


class Part(NamedTuple):
    """Some tokens of a context, seen by one query: `total` and `output` are sums under the part's own maximum.

    Divided by `total`, `output` is the attention output over these tokens alone.
    """

    largest: float
    """The largest logit m."""

    total: float
    """The sum of exp(logit - m)."""

    output: Float64[ndarray, " D"]
    """The sum of exp(logit - m) times value, not divided yet."""
