"""Checks of lab 5: points, inputs and expected values stand here and nowhere else.

A kernel comes back as text and is compiled and run in sandboxes of its own. What the runner says of faults and of
traffic counts from checked runs alone; large inputs are run unchecked, for their values. A slip costs once where it
can: checks that are not about the order of nibbles accept either, inputs that are not about ragged ends fill whole
blocks, logits that are not about overflow stay small. What breaks every launch of a kernel, such as a shuffle that
waits for absent lanes, loses all checks of that kernel, and of no other.
"""

from autograder.checks import Registry

from .benchmark import checks as benchmark
from .debug import checks as debug
from .decode_attention import checks as decode_attention
from .dequantise import checks as dequantise
from .derive import checks as derive
from .quantise_pack import checks as quantise_pack

checks = Registry(derive, quantise_pack, dequantise, decode_attention, benchmark, debug)
