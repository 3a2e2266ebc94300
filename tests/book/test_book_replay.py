"""What chapter 6 says in words about its numbers, held against the code that computes them."""

import re
from pathlib import Path

import fp4kv
import numpy as np
import pytest
from labkit.replay import RingCache, Rows, ToyNetwork, cache_of, decode_step, swa_forward
from labkit.replay.costs import V41_FLASH, Policy, Storage
from labkit.replay.hybrid import load_hybrid
from labkit.replay.hybrid_task import records_task
from labkit.replay.trace import ASSUMED_MACHINE
from pictures import replay_hybrid, replay_looseness, replay_map, replay_prices, replay_random, replay_real, replay_runs
from pictures.recorded import recorded

CHAPTER = (Path(__file__).resolve().parents[2] / "book" / "replay.md").read_text(encoding="utf-8")
EVERY_STATE = """() => {
    const figure = document.querySelector("replay-map"), seen = [];
    const count = (kind) => figure.querySelectorAll(`svg rect.${kind}`).length;
    for (const { n } of figure.data.steps) {
        figure.set(n);
        seen.push([n, Number(figure.dataset.kept), count("exact"), count("wrong")]);
    }
    return seen;
}"""
ROUNDING = 1e-12  # float64 sums of a few dozen terms of size 1 differ by some 1e-15


@pytest.fixture(scope="module")
def loose() -> dict[str, replay_looseness.Errors]:
    return {name: replay_looseness.measure(case) for name, case in replay_looseness.CASES.items()}


@pytest.fixture(scope="module")
def trace() -> replay_prices.Trace:
    return replay_prices.of_trace()


def said(pattern: str) -> list[float]:
    """Return the numbers that the chapter has at a place."""
    found = re.search(pattern, CHAPTER)
    assert found, pattern
    return [float(number.replace("{,}", "").replace(",", "")) for number in found.groups()]


class TestWeights:
    """The first section."""

    def test_bytes_of_the_text_are_those_of_the_geometry(self):
        assert said(r"40 \\cdot 128 \\cdot 528 = ([\d{},]+)\$") == [V41_FLASH.window_state_bytes]
        assert said(r"2\\tfrac12 = (\d+)\$ bytes") == [V41_FLASH.global_token_bytes]
        assert V41_FLASH.global_token_bytes == (288 + 68) * 2.5
        assert V41_FLASH.window_layers * V41_FLASH.window * 528 == V41_FLASH.window_state_bytes
        assert said(r"40 \\cdot 127 = ([\d{},]+)\$ tokens") == [V41_FLASH.window_layers * (V41_FLASH.window - 1)]

    def test_boundaries_weigh_what_the_public_record_says(self):
        times = replay_prices.boundaries()[1][1][1:]
        assert times == ["23.7", "11.9", "1.48", "0.09"]

    def test_policies_that_store_nothing_replay_what_the_text_says(self):
        request = (8192, 8192 - 256)
        for policy, tokens in ((Policy.EXACT_REPLAY, 5080), (Policy.BOUNDED_REPLAY, 128)):
            cost = fp4kv.replay_cost(V41_FLASH, policy, replay_prices.Request(*request), Storage())
            assert cost.tokens_recomputed == tokens


class TestExactness:
    """The light cone, the staircase, and what exact means."""

    @pytest.mark.parametrize(("n", "is_exact"), [(6, True), (5, False)])
    def test_six_tokens_are_enough_for_the_example_and_five_are_not(self, n, is_exact):
        assert fp4kv.exact_rows(3, 3, 20, n)[:, -2:].all() == is_exact
        network, tokens = ToyNetwork(layers=3, window=3), np.arange(20)
        cold = cache_of(swa_forward(network, tokens), network, 20)
        top = fp4kv.bounded_replay(network, tokens, 20, n, {})[2]
        assert (np.abs(top.keys - cold[2].keys).max() < ROUNDING) == is_exact

    def test_row_of_18_follows_from_tokens_14_to_18(self):
        network, tokens = ToyNetwork(layers=3, window=3), np.arange(20)
        row = swa_forward(network, tokens).rows[2].keys[0, 18]
        for changed in range(20):
            other = tokens.copy()
            other[changed] += 20
            moved = np.abs(swa_forward(network, other).rows[2].keys[0, 18] - row).max()
            assert (moved > 1e-6) == (14 <= changed <= 18), changed

    @pytest.mark.parametrize(("n", "at_hit", "before_hit"), [(28, True, False), (29, True, True), (27, False, False)])
    def test_logits_before_the_hit_need_one_token_more(self, n, at_hit, before_hit):
        network, tokens = ToyNetwork(layers=4, window=8), np.random.default_rng(0).integers(64, size=48)
        run, watched = swa_forward(network, tokens), replay_looseness.Watched(network)
        cache = fp4kv.bounded_replay(watched, tokens, 40, n, {})
        last = network.logits(watched.inputs[-1])[-1]
        assert (np.abs(last - run.logits[39]).max() < ROUNDING) == before_hit
        next_one = decode_step(network, int(tokens[40]), 40, cache)
        assert (np.abs(next_one - run.logits[40]).max() < ROUNDING) == at_hit

    def test_row_by_row_network_is_equal_bit_for_bit_and_the_other_within_rounding(self):
        tokens = np.random.default_rng(0).integers(64, size=48)
        for by_row in (False, True):
            network = ToyNetwork(layers=4, window=8, row_by_row=by_row)
            right = cache_of(swa_forward(network, tokens), network, 40)[3].keys
            found = fp4kv.bounded_replay(network, tokens, 40, 28, {})[3].keys
            assert np.abs(found - right).max() < ROUNDING
            assert not by_row or (found == right).all()

    def test_product_row_by_row_does_not_depend_on_the_other_rows(self):
        rng = np.random.default_rng(0)
        x, matrix = rng.normal(size=(40, 256)), rng.normal(size=(256, 256))
        alone, together = ((rows[:, :, None] * matrix).sum(axis=1) for rows in (x[-1:], x))
        assert (alone[0] == together[-1]).all()


class TestErrors:
    """The lemma, the guarantee and the estimate."""

    def test_missing_rows_move_the_output_by_the_lemma(self):
        rng = np.random.default_rng(0)
        p, v = rng.dirichlet(np.ones(8)), rng.normal(size=(8, 5))
        m, kept = p[:3].sum(), p[3:] / p[3:].sum()
        moved = np.linalg.norm(p @ v - kept @ v[3:])
        assert moved == pytest.approx(m * np.linalg.norm(p[:3] @ v[:3] / m - kept @ v[3:]), rel=1e-12)

    def test_guarantee_is_never_broken_and_is_the_error_after_one_layer(self, loose):
        for name, errors in loose.items():
            assert (errors.measured <= errors.guarantee * (1 + 1e-9) + 1e-12).all(), name
        for name in ("damped, n = W", "undamped, n = W", "twelve layers, n = W"):
            assert replay_looseness.ratios(loose[name])[0][0] == pytest.approx(1, abs=1e-9), name

    def test_guarantee_holds_on_the_trained_hybrid_and_soon_says_nothing(self):
        errors = replay_looseness.of_hybrid(n_prompts=2)
        assert (errors.measured <= errors.guarantee * (1 + 1e-9) + 1e-12).all()
        guarantee, _ = replay_looseness.ratios(errors)
        assert 10 < guarantee[0] < guarantee[1]
        run = swa_forward(load_hybrid(index=None), replay_runs.tasks(1)[0].tokens[:256])
        assert errors.guarantee[:, 2].mean() > np.linalg.norm(run.hidden[2], axis=-1).mean()

    def test_guarantee_loosens_by_the_factor_of_the_caption(self, loose):
        guarantee, _ = replay_looseness.ratios(loose["twelve layers, n = W"])
        by_layer = (guarantee[-1] / guarantee[0]) ** (1 / (len(guarantee) - 1))
        (factor,) = said(r"factor of about ([\d.]+) for every layer")
        assert by_layer == pytest.approx(factor, abs=0.15)

    def test_estimate_holds_where_the_chapter_says_and_falls_short_elsewhere(self, loose):
        last = {name: replay_looseness.ratios(errors)[1][-1] for name, errors in loose.items()}
        assert 0.9 < last["damped, n = W"] < 1.05
        assert 0.9 < last["less damped, n = W"] < 1.05
        assert last["forty layers, n = W"] > 1.5
        assert last["eight layers, n = 4W"] < last["eight layers, n = 2W"] < last["twelve layers, n = W"]

    def test_errors_of_neighbours_agree(self):
        """Why the estimate falls short: the errors of the tokens that one token reads point the same way."""
        network, tokens = ToyNetwork(layers=4, window=8, output_scale=0.3), np.arange(60)
        run, watched = swa_forward(network, tokens), replay_looseness.Watched(network)
        fp4kv.bounded_replay(watched, tokens, 48, 16, {})
        errors = (watched.inputs[2] - run.hidden[2, 32:48])[:8]
        units = errors / np.linalg.norm(errors, axis=1, keepdims=True)
        agreement = (units @ units.T)[np.triu_indices(len(units), 1)].mean()
        assert agreement > 0.2, "independent directions would average to 0"

    def test_unit_vectors_turn_as_the_chapter_says(self):
        rng = np.random.default_rng(0)
        x = rng.normal(size=8)
        for share in (0.1, 0.5, 0.99):
            moves = rng.normal(size=(2000, 8))
            moved = x + share * np.linalg.norm(x) * moves / np.linalg.norm(moves, axis=1, keepdims=True)
            apart = moved / np.linalg.norm(moved, axis=1, keepdims=True) - x / np.linalg.norm(x)
            assert np.linalg.norm(apart, axis=1).max() <= 2 * np.sin(np.arcsin(share) / 2)


class TestQuality:
    """Random against trained, window-only against hybrid, and the bits."""

    def test_random_picture_is_near_the_earlier_one(self):
        found = replay_random.random_picture()
        for n, name in ((8, "W"), (16, "2W")):
            earlier = np.array(replay_random.EARLIER[name])
            assert (found[n][earlier == 0] < ROUNDING).all()
            seen = earlier > 0
            assert np.abs(np.log(found[n][seen] / earlier[seen])).max() < np.log(1.5), "another norm, other seeds"
        assert found[27][3] > 1e-5
        assert found[28].max() < ROUNDING

    def test_trained_networks_suffer_less_than_random_ones_at_every_length(self):
        found = replay_hybrid.replays()
        for kind in ("hybrid", "windows alone"):
            for trained, random in zip(found[f"{kind}, trained"], found[f"{kind}, random"], strict=True):
                assert trained["replayed"] == random["replayed"]
                right, wrong = (max(replay_hybrid.key_errors(entry)) for entry in (trained, random))
                assert right < wrong or max(right, wrong) < ROUNDING

    def test_global_layers_halve_what_exactness_takes(self):
        last = {name: entries[-1] for name, entries in replay_hybrid.replays().items()}
        assert all(max(replay_hybrid.key_errors(entry)) < ROUNDING for entry in last.values())
        assert [entry["replayed"] for entry in last.values()] == [62, 62, 124, 124]

    def test_replay_of_one_window_loses_no_record(self):
        for entry in replay_hybrid.replays("questions")["hybrid, trained"]:
            cold, replayed = (entry[f"recall in all later tokens, {run}"]["mean"] for run in ("cold", "replayed"))
            assert cold == replayed > 0.99

    def test_record_is_what_the_network_does(self):
        """One of the recorded sequences, measured again: within four times the interval of a mean over twenty."""
        network, task = load_hybrid(), records_task(0, tokens=512, records=48)
        hit = int(task.questions[0]) - 64
        run = swa_forward(network, task.tokens)
        cold = cache_of(run, network, hit)
        kept = replay_runs.global_rows(network, run, hit)
        for entry in replay_hybrid.replays()["hybrid, trained"][:2]:
            cache = fp4kv.bounded_replay(network, task.tokens, hit, entry["replayed"], kept)
            recorded = entry["key rows of layer 2"]
            found = replay_runs.key_error(cache[2], cold[2])
            several = 4 * recorded["half"] * np.sqrt(20)
            assert found == pytest.approx(recorded["mean"], abs=several)

    def test_one_window_leaves_a_real_network_as_it_was_and_none_does_not(self):
        by_length = {entry["replayed"]: entry for entry in replay_real.replays()}
        assert replay_real.perplexity(by_length[0]) > 1.3
        assert replay_real.perplexity(by_length[64]) == pytest.approx(1, abs=0.02)
        runs = replay_real.runs()
        outside = {name: run[replay_real.OUTSIDE]["change from cold"] for name, run in runs.items()}
        assert outside["hybrid, no replay"]["high"] < -0.1
        assert outside["hybrid, 64 replayed"]["low"] < 0 < outside["hybrid, 64 replayed"]["high"]
        assert runs["hybrid, 64 replayed"][replay_real.INSIDE]["answers that changed"] > 0

    def test_exact_replay_of_a_real_network_takes_what_the_theorem_says(self):
        made = recorded("real_replay")["hybrid"]
        assert made["exact replay, tokens"] == len(made["window layers"]) * (made["window"] - 1)

    def test_what_four_bits_cost_windows_depends_on_the_keys(self):
        for loudness, sign in ((1, -1), (replay_hybrid.LOUD, 1)):
            difference = replay_hybrid.window_less_global(loudness)
            assert sign * difference["mean"] > difference["half"]
            fp8, e2m1 = (replay_hybrid.divergence(f"{name} in windows", loudness)["mean"] for name in ("FP8", "E2M1"))
            assert fp8 < e2m1 / 5
        assert replay_hybrid.least_recall() > 0.99

    def test_bits_in_windows_take_damage_away(self):
        for loudness in (1, replay_hybrid.LOUD):
            places = ("E2M1 everywhere", "E2M1, but FP8 in windows")
            everywhere, spared = (replay_hybrid.divergence(place, loudness)["mean"] for place in places)
            assert spared < 0.7 * everywhere

    def test_doubled_scale_hurts_more_in_a_global_row(self):
        assert 2 * replay_hybrid.doubled("window") < replay_hybrid.doubled("global")

    def test_index_in_e2m1_picks_other_blocks_as_the_chapter_says(self):
        exact, fp8, e2m1 = replay_hybrid.index_entries().values()
        assert e2m1[0] < fp8[0] < exact[0] == 1
        assert e2m1[0] == pytest.approx(0.9, abs=0.03)
        assert e2m1[1]["text_kl"]["mean"] < 1.5 * exact[1]["text_kl"]["mean"]
        _, _, loud = replay_hybrid.index_entries(replay_hybrid.LOUD).values()
        assert loud[0] == pytest.approx(0.75, abs=0.03)
        assert 3 < loud[1]["text_kl"]["mean"] / e2m1[1]["text_kl"]["mean"] < 6

    def test_bits_saved_are_those_of_the_row(self):
        assert replay_prices.four_bits_in_windows() == {"saved-window": 40 * 128 * 240, "saved-global": 600}


class TestPrices:
    """Policies on the trace, and the faults."""

    def test_policies_rank_as_the_chapter_says(self, trace):
        waits = [trace.totals[policy].mean_first_token_s for policy in Policy]
        full, checkpoints, exact, bounded = waits
        assert full < bounded < checkpoints < exact
        assert bounded - full < 0.01
        assert trace.totals[Policy.BOUNDED_REPLAY].bytes_stored == 0
        assert 10 < trace.totals[Policy.FULL_CACHE].bytes_stored / trace.global_bytes < 11.9

    @pytest.mark.parametrize(("share", "policy"), [(1.01, Policy.FULL_CACHE), (0.99, Policy.BOUNDED_REPLAY)])
    def test_break_even_is_where_the_choice_turns(self, trace, share, policy):
        speed = share * replay_prices.break_even_write(trace)
        machine = ASSUMED_MACHINE._replace(write_bytes_per_second=speed)
        assert fp4kv.choose_policy(V41_FLASH, trace.requests, Storage(), machine, must_be_exact=False) is policy

    def test_machine_of_the_text_is_the_one_assumed(self):
        assert said(r"assumed: ([\d,]+) tokens a second, (\d+) GB/s read, (\d+) GB/s written") == [
            ASSUMED_MACHINE.prefill_tokens_per_second,
            ASSUMED_MACHINE.read_bytes_per_second / 1e9,
            ASSUMED_MACHINE.write_bytes_per_second / 1e9,
        ]

    def test_window_that_is_off_by_one_gives_the_average_of_the_text(self):
        keys = np.arange(12)
        for window, mean in ((4, 8.5), (5, 8.0)):
            seen = fp4kv.window_mask(np.array([10]), keys, window)[0]
            assert keys[seen].mean() == mean

    def test_replay_from_100_lets_103_read_four_rows(self):
        assert fp4kv.window_slots(103, start=100, window=8, length=8).tolist() == [p % 8 for p in range(100, 104)]

    def test_ring_of_the_example_is_two_slots_too_short(self):
        for length, is_held in ((4, False), (fp4kv.ring_length(4, 2, is_written_first=False), True)):
            ring = RingCache(length, 1, 1)
            ring.write(np.arange(12), Rows(np.zeros((1, 12, 1)), np.zeros((1, 12, 1))))
            if is_held:
                ring.read(np.arange(7, 10))
            else:
                with pytest.raises(LookupError):
                    ring.read(np.arange(7, 10))

    def test_rewritten_rows_are_wrong_but_for_the_last_of_the_first_global_layer(self):
        first, second = replay_prices.rewritten(n_networks=5)[1]
        assert first[-1] == "0.00"
        assert all(float(cell) > 0.05 for cell in first[1:-1] + second[1:])

    def test_answers_of_the_exercises_are_right(self):
        network = ToyNetwork(layers=2, window=128, width=4)
        for hit, n, start in ((64, 64, 0), (128, 128, 0), (129, 128, 1), (1000, 128, 872)):
            is_exact = fp4kv.exact_rows(2, network.window, hit, 128)
            assert (is_exact.shape[1], hit - is_exact.shape[1]) == (n, start)
            assert is_exact.all() == (start == 0)
        assert 36 * 511 == 18_396
        p, v = np.array([0.25, 0.25, 0.5]), np.array([8.0, 4.0, 2.0])
        assert (p @ v, p[1:] @ v[1:] / p[1:].sum()) == pytest.approx((4, 8 / 3))


class TestFigure:
    """The data of the live figure."""

    def test_rows_that_are_called_exact_are_and_the_others_are_not(self):
        for step in replay_map.replay_map_data()["steps"]:
            is_exact, errors = np.array(step["exact"], bool), replay_map.row_errors(step["n"])
            assert errors.shape == (4, step["n"])
            assert (errors[is_exact] < ROUNDING).all()
            assert (errors[~is_exact] > 1e-7).all()

    def test_first_state_is_the_one_that_the_alternative_text_describes(self):
        is_exact = replay_map.exact(replay_map.START)
        assert is_exact.sum(axis=1).tolist() == [8, 1, 0, 0]


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.timeout(600)
@pytest.mark.xdist_group("book")
class TestBuilt:
    """The live figure in the built page."""

    @pytest.fixture
    def page(self, address, context):
        page = context.new_page()
        page.goto(f"{address}/replay.html", wait_until="load")
        page.wait_for_selector("replay-map .panel")
        return page

    def test_figure_equals_library_at_every_step(self, page):
        seen = page.evaluate(EVERY_STATE)
        assert [n for n, *_ in seen] == list(range(7, 33))
        for n, kept, n_exact, n_wrong in seen:
            right = fp4kv.exact_rows(4, 8, 40, n)
            assert (kept, n_exact, n_wrong) == (right[:, -7:].sum(), right.sum(), (~right).sum()), n

    def test_figure_is_driven_by_keys_and_tells_what_it_shows(self, page):
        page.focus("replay-map input[type=range]")
        page.keyboard.press("End")
        assert page.get_attribute("replay-map input[type=range]", "aria-valuetext") == "32 tokens"
        assert "All 28 rows" in page.inner_text("replay-map .words")
        page.keyboard.press("Home")
        assert "7 of 28 rows" in page.inner_text("replay-map .words")
        page.wait_for_function("document.querySelector('replay-map [aria-live]').textContent.includes('7 of 28')")
        assert page.get_by_role("slider", name="Replay").count() == 1
        assert page.locator("replay-map").get_by_role("img", name="A map of four layers").count() == 1

    def test_numbers_of_the_figure_stand_in_a_table(self, page):
        page.locator("replay-map summary").click()
        rows = page.locator("replay-map tbody tr")
        assert rows.count() == 4
        assert rows.nth(3).locator("td").count() == 7

    def test_figure_without_scripts_is_a_still_picture(self, address, chromium):
        context = chromium.new_context(java_script_enabled=False)
        page = context.new_page()
        page.goto(f"{address}/replay.html")
        assert page.locator("replay-map .still svg").is_visible()
        assert "A map of four layers" in page.locator("replay-map .still svg title").text_content()
        context.close()
