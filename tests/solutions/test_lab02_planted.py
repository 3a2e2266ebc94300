"""Planted answers of the lab on formats: each loses the checks that name its mistake and no other; a right one none."""

from collections import Counter

import pytest

LEAST_WRONG, LEAST_RIGHT = 4, 2
N_SEEDS = 3


@pytest.mark.sandbox
def test_planted_answers_lose_what_they_say_in_the_judge(planted_to_task, judge_many):
    lost = judge_many(planted_to_task)
    differing = {
        answer.name: (answer.loses, lost[answer.name])
        for answer in planted_to_task
        if set(lost[answer.name]) != set(answer.loses)
    }
    assert not differing


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # some mistakes divide by zero: that is what they are
def test_planted_answer_loses_the_same_whatever_the_seed(planted, lost_directly):
    for seed in range(N_SEEDS):
        lost = lost_directly({planted.task: planted.source}, seed)
        assert set(lost) == set(planted.loses), (seed, lost)


def test_solved_lab_loses_nothing_whatever_the_seed(lost_directly):
    lost = {seed: found for seed in range(40) if (found := lost_directly({}, seed))}
    assert not lost


def test_every_task_has_enough_planted_answers(lab, answers):
    wrong = Counter(answer.task for answer in answers if not answer.is_right)
    right = Counter(answer.task for answer in answers if answer.is_right)
    tasks = {check.task for check in lab.checks}
    assert {task: wrong[task] for task in tasks if wrong[task] < LEAST_WRONG} == {}
    assert {task: right[task] for task in tasks if right[task] < LEAST_RIGHT} == {}


def test_every_check_is_lost_by_a_planted_answer_to_its_own_task(lab, answers):
    lost = {check for answer in answers for check in answer.loses if check.startswith(f"{answer.task}-")}
    assert {check.id for check in lab.checks} - lost == set()


def test_planted_answers_say_their_mistake_first(answers):
    assert [answer.name for answer in answers if not answer.source.startswith("# ")] == []


def test_planted_answers_to_a_task_have_different_names(answers):
    counts = Counter((answer.task, answer.name) for answer in answers)
    assert [key for key, count in counts.items() if count > 1] == []
