"""The papers' numbers: every one a possible count or marked, every derived one re-derived (METHODS.md 8)."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import SetupError, UserError
from harness.report.reported import Reported, displayed, files, impossible, load, possible_count, reported_dir
from harness.report.statistics import interaction, unweighted_mean

ENVS = ("alfworld", "webarena", "officebench")
METHODS = ("none", "generative", "metagpt", "gmemory", "sepm")

# METHODS.md 8.1: k of 134 / 812 / 300
TABLE1 = {
    ("autogen", "none"): (80, 101, 125),
    ("autogen", "generative"): (115, 124, 115),
    ("autogen", "metagpt"): (105, 211, 136),
    ("autogen", "gmemory"): (112, 246, 150),
    ("autogen", "sepm"): (120, 311, 164),
    ("dylan", "none"): (72, 121, 100),
    ("dylan", "generative"): (88, 124, 99),
    ("dylan", "metagpt"): (66, 182, 105),
    ("dylan", "gmemory"): (83, 207, 128),
    ("dylan", "sepm"): (92, 242, 142),
}
TABLE2 = {
    "qwen3.5-0.8b": (78, 118, 137),
    "qwen3.5-2b": (77, 120, 137),
    "qwen3.5-9b": (90, 130, 149),
    "qwen3.5-27b": (109, 247, 167),
    "gemma-4-12b-it": (97, 183, 159),
    "gemma-4-31b-it": (104, 233, 163),
    "deepseek-v4-flash-0731": (125, 309, 193),
    "qwen3.8-max": (120, 320, 191),
    "glm-5.2": (115, 308, 182),
    "kimi-k3": (121, 344, 196),
    "gpt-5-mini": (120, 311, 164),
    "gpt-5.6-terra": (123, 351, 203),
    "claude-opus-5": (124, 345, 196),
}
COMPONENTS = {
    "none": (80, 101, 125),
    "blackboard": (93, 225, 135),
    "blackboard+memory": (116, 276, 136),
    "blackboard+alignment": (110, 280, 153),
    "full": (120, 311, 164),
}
TEXT = {"full": (120, 311, 164), "text": (97, 245, 127)}
# the first four rows of Table 5: condition with and condition without
GAINS = {
    "memory_on_blackboard": ("blackboard+memory", "blackboard"),
    "memory_on_blackboard+alignment": ("full", "blackboard+alignment"),
    "alignment_on_blackboard": ("blackboard+alignment", "blackboard"),
    "alignment_on_blackboard+memory": ("full", "blackboard+memory"),
}


def _scores(name: str, key: str) -> dict[tuple[str, str], Reported]:
    found = {(getattr(number, key), number.env): number for number in load(name) if number.metric == "score"}
    assert len(found) == sum(number.metric == "score" for number in load(name))
    return found


def _table1() -> dict[tuple[str, str, str], Reported]:
    return {(number.host, number.method, number.env): number for number in load("sepm_table1.csv") if number.metric == "score"}


def test_every_count_of_table_1_rounds_to_its_displayed_value() -> None:
    """SEPM-R39: percent with two decimals from counts."""
    found = _table1()
    assert len(found) == 30
    for (host, method), counts in TABLE1.items():
        for env, k in zip(ENVS, counts, strict=True):
            number = found[host, method, env]
            assert number.k == k
            assert displayed(k, number.n or 0) == number.value


@pytest.mark.parametrize(
    ("name", "key", "counts"),
    [("sepm_table2.csv", "model", TABLE2), ("sepm_components.csv", "variant", COMPONENTS), ("sepm_textual.csv", "variant", TEXT)],
)
def test_every_count_of_the_other_tables_rounds_to_its_displayed_value(
    name: str, key: str, counts: dict[str, tuple[int, int, int]]
) -> None:
    found = _scores(name, key)
    assert len(found) == 3 * len(counts)
    for row, ks in counts.items():
        for env, k in zip(ENVS, ks, strict=True):
            number = found[row, env]
            assert (number.k, displayed(k, number.n or 0)) == (k, number.value)


@pytest.mark.parametrize("name", files())
def test_k_and_n_agree_with_the_value_everywhere(name: str) -> None:
    for number in load(name):
        if number.count is None:
            assert number.k is None
        else:
            assert number.count.ks == (() if number.k is None else (number.k,))
            assert number.possible or number.count.explain() == f"{number.value} is {number.note}"


def test_the_arrows_of_table_1_are_differences_of_displayed_scores() -> None:
    found = _table1()
    arrows = [number for number in load("sepm_table1.csv") if number.metric == "change"]
    assert len(arrows) == 30
    for arrow in arrows:
        ours, base = found[arrow.host, arrow.method, arrow.env], found[arrow.host, "none", arrow.env]
        assert Decimal(arrow.value) == Decimal(ours.value) - Decimal(base.value)


def test_the_margins_of_section_5_2_follow_from_table_1() -> None:
    found = _table1()
    margins = {}
    for host in ("autogen", "dylan"):
        for env in ENVS:
            best = max(Decimal(found[host, method, env].value) for method in METHODS if method != "sepm")
            margins[host, env] = str(Decimal(found[host, "sepm", env].value) - best)
    assert list(margins.values()) == ["3.73", "8.00", "4.67", "2.99", "4.31", "4.66"]


def test_table_5_follows_from_displayed_scores_and_differs_from_counts_in_three_cells() -> None:
    """SEPM-R39: deltas by the paper's convention, and from counts."""
    scores = _scores("sepm_components.csv", "variant")
    stated = {(number.variant, number.env): number.value for number in load("sepm_table5.csv")}
    differing = {}
    for gain, (more, less) in GAINS.items():
        for env in ENVS:
            first, second = scores[more, env], scores[less, env]
            assert Decimal(stated[gain, env]) == Decimal(first.value) - Decimal(second.value)
            from_counts = displayed((first.k or 0) - (second.k or 0), first.n or 0)
            if from_counts != stated[gain, env]:
                differing[gain, env] = (stated[gain, env], from_counts)
    assert differing == {
        ("memory_on_blackboard", "alfworld"): ("17.17", "17.16"),
        ("alignment_on_blackboard+memory", "alfworld"): ("2.98", "2.99"),
        ("alignment_on_blackboard+memory", "officebench"): ("9.34", "9.33"),
    }


def test_the_interaction_contrast_follows_from_displayed_scores() -> None:
    """SEPM-R40: I = s_BMA − s_BM − s_BA + s_B."""
    scores = _scores("sepm_components.csv", "variant")
    stated = {number.env: number.number for number in load("sepm_table5.csv") if number.variant == "interaction"}
    names = {"BMA": "full", "BM": "blackboard+memory", "BA": "blackboard+alignment", "B": "blackboard"}
    for env in ENVS:
        found = interaction({key: scores[variant, env].number for key, variant in names.items()})
        assert found == pytest.approx(stated[env])
    assert list(stated.values()) == [-9.71, -2.46, 3.34]


def test_the_textual_control_is_full_minus_the_stated_reduction() -> None:
    numbers = {(number.variant, number.env): Decimal(number.value) for number in load("sepm_textual.csv")}
    for env in ENVS:
        assert numbers["full", env] + numbers["text-full", env] == numbers["text", env]
        assert str(numbers["full", env]) == _table1()["autogen", "sepm", env].value


def test_the_unweighted_means_of_figure_4a() -> None:
    """SEPM-R41."""
    found = _table1()
    stated = {(number.host, number.method): number.value for number in load("sepm_means.csv")}
    for (host, method), value in stated.items():
        assert f"{unweighted_mean([found[host, method, env].number for env in ENVS]):.2f}" == value
    assert list(stated.values()) == ["37.94", "60.84", "33.99", "48.60"]


def test_the_ranges_of_table_2() -> None:
    found = _scores("sepm_table2.csv", "model")
    ranges = []
    for env in ENVS:
        values = [Decimal(found[model, env].value) for model in TABLE2]
        ranges.append(str(max(values) - min(values)))
    assert ranges == ["35.82", "28.70", "22.00"]


def test_the_relative_token_changes() -> None:
    """SEPM-R42."""
    numbers = load("sepm_tokens.csv")
    totals = {number.method: number.number for number in numbers if number.metric == "tokens"}
    assert totals == {"none": 4.4, "generative": 5.6, "metagpt": 4.8, "gmemory": 5.7, "sepm": 5.2}
    for number in numbers:
        if number.metric == "relative_change":
            base = totals[number.variant.removeprefix("sepm/")]
            assert f"{(totals['sepm'] / base - 1) * 100:.1f}" == number.value
    assert [f"{(5.2 / base - 1) * 100:+.2f}" for base in (4.4, 5.6, 5.7)] == ["+18.18", "-7.14", "-8.77"]


def test_the_deltas_of_table_4() -> None:
    found = {(number.method, number.split, number.metric): Decimal(number.value) for number in load("sepm_table4.csv")}
    assert len(found) == 30
    for metric, stated in {"task_score": ("4.89", "4.08", "7.30"), "communication_score": ("9.47", "11.14", "3.74")}.items():
        for split, value in zip(("coding", "research", "database"), stated, strict=True):
            assert str(found["sepm", split, metric] - found["gmemory", split, metric]) == value


def test_the_means_over_backbones_of_emma_agree_with_their_rows() -> None:
    for name in ("emma_table2.csv", "emma_table3.csv"):
        groups: dict[tuple[str, str, str, str], dict[str, Reported]] = {}
        for number in load(name):
            groups.setdefault((number.env, number.split, number.method, number.metric), {})[number.model] = number
        for group in groups.values():
            mean = group.pop("mean")
            assert len(group) == 5
            assert unweighted_mean([number.number for number in group.values()]) == pytest.approx(
                mean.number, abs=0.5001 * 10**-mean.decimals
            )


def test_only_the_known_numbers_are_impossible() -> None:
    found = {
        (number.paper, number.host or number.method, number.model, number.value)
        for name in files()
        for number in impossible(load(name))
    }
    assert found == {
        ("EMMA", "gepa", "DSv3.2", "0.501"),
        ("EMMA", "evomas", "O-5", "0.650"),
        ("SMG", "autogen", "", "51.3"),
        ("SMG", "crewai", "", "47.8"),
        ("SMG", "msgbus", "", "44.2"),
        ("SMG", "smg", "", "73.1"),
    }


def test_every_sepm_number_names_its_place_in_the_paper() -> None:
    for name in files():
        for number in load(name):
            assert number.paper and number.source and number.unit
            assert (number.arxiv_id == "2610.14515v1") == (number.paper == "SEPM")


# --- the functions ----------------------------------------------------------------------------------------------------
def test_an_impossible_number_is_explained_by_its_neighbours() -> None:
    assert (
        possible_count("0.501", 368, 1).explain() == "0.501 is not a possible count of 368: 184 gives 0.500 and 185 gives 0.503"
    )
    assert possible_count("59.70", 134).explain() == "59.70 is 80 of 134"
    assert possible_count("50", 134).ks == (67,)


@given(
    st.integers(1, 900).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.integers(0, 3), st.sampled_from([1, 100])
)
def test_every_count_is_possible_as_displayed(counts: tuple[int, int], decimals: int, scale: int) -> None:
    k, n = counts
    assert k in possible_count(displayed(k, n, decimals, scale), n, scale).ks


def test_ties_round_half_up_and_are_possible_either_way() -> None:
    assert displayed(1, 32) == "3.13"
    assert possible_count("3.12", 32).possible and possible_count("3.13", 32).possible


def test_the_data_is_found_in_a_checkout_and_in_a_wheel(tmp_path: Path) -> None:
    package = tmp_path / "harness"
    (tmp_path / "results" / "reported").mkdir(parents=True)
    package.mkdir()
    assert reported_dir(package) == tmp_path / "results" / "reported"
    (package / "_reported").mkdir()
    assert reported_dir(package) == package / "_reported"
    with pytest.raises(SetupError, match="missing"):
        reported_dir(tmp_path / "nowhere" / "harness")
    assert (reported_dir() / "sepm_table1.csv").is_file()


def test_an_unknown_file_suggests_the_nearest() -> None:
    with pytest.raises(UserError, match=r"sepm_table1\.csv"):
        load("sepm_table_1.csv")
