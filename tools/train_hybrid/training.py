"""The curriculum and the optimisers: Muon for the matrices of the layers, AdamW for the rest."""

import math
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import UInt8
from labkit.replay.hybrid_task import FIRST_KEY, VOCABULARY, place_records
from torch import Tensor, nn
from torch.nn import functional

from .model import Hybrid

Text = UInt8[np.ndarray, " n"]
IGNORED = -100
WARM_UP_STEPS = 50
CLIP_NORM = 1.0


class Stage(NamedTuple):
    """So many steps on batches of so many sequences, with a number of records drawn from a range."""

    steps: int
    batch: int
    tokens: int
    fewest_records: int
    most_records: int


class Course(NamedTuple):
    """Stages under one cosine of the learning rates, and the weight of the loss on text beside that on answers."""

    stages: tuple[Stage, ...]
    adam_rate: float
    muon_rate: float
    text_weight: float


# Short sequences first: the two-step lookup is found there, and then only has to be kept while contexts grow.
CURRICULUM = (
    Course(
        (
            Stage(250, 64, 48, 6, 10),
            Stage(100, 32, 128, 16, 32),
            Stage(80, 16, 256, 32, 64),
            Stage(70, 8, 512, 64, 128),
        ),
        2e-3,
        0.02,
        0.1,
    ),
    Course((Stage(80, 8, 512, 48, 124), Stage(50, 4, 1024, 64, 250)), 1e-3, 0.01, 0.1),
    # What the first two leave out: to read the text between the records.
    Course((Stage(240, 16, 256, 2, 62), Stage(60, 8, 512, 4, 124)), 1e-3, 0.01, 1.0),
    # And what that course forgets: to look far back.
    Course((Stage(90, 6, 1024, 32, 250),), 1e-3, 0.01, 0.5),
)

# For a network of window layers alone, which can read but not look up.
WINDOW_CURRICULUM = (Course((Stage(300, 16, 256, 2, 16),), 2e-3, 0.02, 1.0),)


class Batch(NamedTuple):
    """Tokens, the positions of the questions, and the answers; batch first."""

    tokens: Tensor
    questions: Tensor
    answers: Tensor


def draw_batch(text: Text, size: int, tokens: int, records: int, rng: np.random.Generator) -> Batch:
    """Return sequences from random places of the text."""
    starts = rng.integers(len(text) - tokens + 1, size=size)
    tasks = [place_records(text[start : start + tokens], records, rng) for start in starts]
    return Batch(*(torch.from_numpy(np.stack(column)) for column in list(zip(*tasks, strict=True))[:3]))


def losses(model: Hybrid, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return the mean loss on answers and the mean loss on bytes of text, in nats."""
    logits = model(batch.tokens)
    places = batch.questions[..., None].expand(-1, -1, VOCABULARY)
    on_answers = functional.cross_entropy(logits.gather(1, places).flatten(0, 1), batch.answers.flatten())
    following = batch.tokens[:, 1:]
    wanted = torch.where(following < FIRST_KEY, following, IGNORED)
    on_text = functional.cross_entropy(logits[:, :-1].flatten(0, 1), wanted.flatten(), ignore_index=IGNORED)
    return on_answers, torch.nan_to_num(on_text)  # a sequence may be all records


def optimisers(model: nn.Module, course: Course) -> list[torch.optim.Optimizer]:
    """Return Muon over the layers' matrices and AdamW over the rest."""
    matrices = [weight for name, weight in model.named_parameters() if name.startswith("layers") and weight.dim() == 2]
    taken = {id(weight) for weight in matrices}
    others = [weight for weight in model.parameters() if id(weight) not in taken]
    decayed = [weight for weight in others if weight.dim() == 2]
    kept = [weight for weight in others if weight.dim() != 2]
    groups = [{"params": decayed, "weight_decay": 0.05}, {"params": kept, "weight_decay": 0.0}]
    muon = torch.optim.Muon(matrices, lr=course.muon_rate, momentum=0.95, weight_decay=0.01, adjust_lr_fn="original")
    return [muon, torch.optim.AdamW(groups, lr=course.adam_rate, betas=(0.9, 0.98))]


def run_course(model: Hybrid, text: Text, course: Course, rng: np.random.Generator) -> None:
    """Train through one course, printing where it stands."""
    both = optimisers(model, course)
    schedules = [torch.optim.lr_scheduler.LambdaLR(optimiser, rate(course)) for optimiser in both]
    done, started = 0, time.monotonic()
    for stage in course.stages:
        for _ in range(stage.steps):
            records = int(rng.integers(stage.fewest_records, stage.most_records + 1))
            batch = draw_batch(text, stage.batch, stage.tokens, records, rng)
            on_answers, on_text = losses(model, batch)
            model.zero_grad()
            (on_answers + course.text_weight * on_text).backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
            for optimiser, schedule in zip(both, schedules, strict=True):
                optimiser.step()
                schedule.step()
            done += 1
            if done % 25 == 0:
                bits = on_text.item() / math.log(2)
                elapsed = time.monotonic() - started
                print(
                    f"  {done:4d} {stage.tokens:5d}/{records:<3d} answers {on_answers.item():.3f} nats, "
                    f"text {bits:.2f} bits a byte, {elapsed:.0f} s",
                    flush=True,
                )


def rate(course: Course) -> Callable[[int], float]:
    """Return the factor of the learning rate at each step: a short rise, then half a cosine."""
    total = sum(stage.steps for stage in course.stages)
    rise = min(WARM_UP_STEPS, max(1, total // 10))
    return lambda step: min(1.0, (step + 1) / rise) * (0.5 + 0.5 * math.cos(math.pi * step / total))


@torch.no_grad()
def recall(model: Hybrid, text: Text, tokens: int, records: int, sequences: int = 16, seed: int = 123) -> float:
    """Return the share of questions whose answer has the largest logit."""
    rng = np.random.default_rng(seed)
    right = 0.0
    for _ in range(sequences):
        batch = draw_batch(text, 1, tokens, records, rng)
        chosen = model(batch.tokens)[0, batch.questions[0]].argmax(-1)
        right += (chosen == batch.answers[0]).float().mean().item()
    return right / sequences
