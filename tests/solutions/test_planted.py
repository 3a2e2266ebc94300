"""Planted answers of every lab: each loses the checks that name its mistake and no other; a right one none."""

import os
from collections import Counter

import pytest

LEAST_WRONG, LEAST_RIGHT = 4, 2
IS_QUICK = bool(os.environ.get("CI"))  # the same cases each time there, so that more seeds would only repeat them
N_SEEDS = 1 if IS_QUICK else 3
N_SEEDS_SOLVED = 10 if IS_QUICK else 40


@pytest.mark.sandbox
def test_planted_answers_lose_what_they_say_in_the_judge(bench, planted_to_task):
    answers = bench.some_of(planted_to_task)
    lost = bench.judge_many(answers)
    differing = {
        answer.name: (answer.loses, lost[answer.name])
        for answer in answers
        if set(lost[answer.name]) != set(answer.loses)
    }
    assert not differing


def test_planted_answer_loses_the_same_whatever_the_seed(bench, planted):
    for seed in range(N_SEEDS):
        lost = bench.lost_directly({planted.task: planted.source}, seed)
        assert set(lost) == set(planted.loses), (seed, lost)


def test_solved_lab_loses_nothing_whatever_the_seed(bench):
    lost = {seed: found for seed in range(N_SEEDS_SOLVED) if (found := bench.lost_directly({}, seed))}
    assert not lost


def test_every_task_has_enough_planted_answers(bench):
    wrong = Counter(answer.task for answer in bench.answers if not answer.is_right)
    right = Counter(answer.task for answer in bench.answers if answer.is_right)
    tasks = {check.task for check in bench.lab.checks}
    assert {task: wrong[task] for task in tasks if wrong[task] < LEAST_WRONG} == {}
    assert {task: right[task] for task in tasks if right[task] < LEAST_RIGHT} == {}


def test_every_check_is_lost_by_a_planted_answer_to_its_own_task(bench):
    lost = {check for answer in bench.answers for check in answer.loses if check.startswith(f"{answer.task}-")}
    assert {check.id for check in bench.lab.checks} - lost == set()


def test_planted_answers_say_their_mistake_first(bench):
    assert [answer.name for answer in bench.answers if not answer.source.startswith("# ")] == []


def test_planted_answers_to_a_task_have_different_names(bench):
    counts = Counter((answer.task, answer.name) for answer in bench.answers)
    assert [key for key, count in counts.items() if count > 1] == []
