"""`clearway advise`: sentences that follow from runs."""

from __future__ import annotations

import json
import math
from pathlib import Path

import clearway as cw
import pandas as pd
import pytest
from called import call
from clearway.comparisons.advise import Advice, Difference, difference, seconds_of

SCENARIO = """
name = "small"
transport = "dctcp"
measure.interval = "0s"
[fabric.leaf_spine]
racks = 2
hosts_per_rack = 3
spines = 2
[[traffic]]
sizes = "websearch"
arrivals = { poisson = { load = 0.5 } }
flows = 60
"""


def runs(**times: list[float]) -> pd.DataFrame:
    rows = [
        {"scheme": name.split("__")[0], "change": [*name.split("__"), "as it is"][1].replace("_", " "), "seed": seed,
         "all mean": value, "short p99": value, "long mean": value, "unfinished": 0, "status": "done"}
        for name, values in times.items() for seed, value in enumerate(values, 1)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_differences_are_paired_ratios_with_their_interval() -> None:
    one, other = pd.Series({1: 2.0, 2: 3.0, 3: 4.0}), pd.Series({2: 3.3, 1: 2.2, 3: 4.4, 9: 1.0})
    of = difference(one, other)
    assert of.share == pytest.approx(1 / 1.1 - 1) and of.low == pytest.approx(of.high) and of.clear
    assert (of.better, of.seeds) == (3, 3)
    noisy = difference(pd.Series({1: 1.0, 2: 2.0}), pd.Series({1: 2.0, 2: 1.0}))
    assert not noisy.clear and noisy.better == 1
    # By hand: mean log is 0, its standard error is ln 2, and Student's t for one degree of freedom is 12.706.
    assert noisy.high == pytest.approx(math.exp(12.706 * math.log(2)) - 1, rel=1e-3)
    assert str(Difference(2.5, 1.0, 4.0, 0, 3)) == "3.5 times (2 to 5)"


def test_sentences_are_ranked_and_name_no_difference_that_chance_explains() -> None:
    table = runs(a=[1.0, 1.1, 1.05], b=[1.2, 1.3, 1.27], c=[1.0, 1.12, 1.06], a__x_dead=[1.5, 1.7, 1.6],
                 b__x_dead=[1.2, 1.3, 1.27], a__1_MB=[1.0, 1.1, 1.05], a__9_KB=[1.3, 1.5, 1.4], d=[9.0])  # fmt: skip
    advice = Advice(table, "all mean", ["a", "c", "b"], ["x dead"], ["9 KB", "1 MB"], {"e": "key: can not"}, "setting")
    said = advice.said()
    assert said[0].startswith("a has the lowest mean slowdown: 1.05 ")
    assert said[1].startswith("c is as good as a: over 3 seeds") and said[2].startswith("a beats b by 16% (")
    assert said[2].endswith("in 3 of 3 seeds.")
    assert said[3].startswith("With x dead: a takes 52% (") and said[3].endswith("b is then the best.")
    assert "9 KB costs 33%" in said[4] and "1 MB makes no clear difference" in said[4]
    assert "d (+800%)" in said[5]
    vague = Advice(runs(a=[1.0, 1.1, 1.05], c=[1.0, 2.0, 1.02]), "all mean", ["a", "c"], [], [], {}, "setting")
    assert "c varies too much to be ranked: over 3 seeds, a takes between" in vague.said()[1]
    assert "| a | 3 |" in advice.markdown() and "e: can not" in advice.markdown()


def test_the_command_says_which_and_writes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(SCENARIO)
    Path("page.md").write_text("# Which?\n<!-- advice: begin -->\n<!-- advice: end -->\n")
    chosen = ["--transport", "dctcp", "--transport", "dcpim", "--transport", "rsvp", "--buffer", "100KB"]
    done = call("advise", "small.toml", "--budget", "20h", "--seeds", 3, "--workers", 1, *chosen, "--write", "page.md",
                "--json")  # fmt: skip
    assert done.code == 0, done.err + done.out
    found = json.loads(done.out)
    assert len(found["said"]) >= 4 and "has the lowest mean slowdown" in found["said"][0]
    assert any("leaf0-spine0 dead" in one for one in found["said"])
    assert any("100KB per port" in one for one in found["said"])
    assert {row["transport"] for row in found["table"]} >= {"dctcp", "dcpim"} and found["table"][0]["seeds"] == 3
    assert "1. " in Path("page.md").read_text()
    assert "<h2>Answer</h2>" in Path("out/small-advise/advice.html").read_text()
    # The numbers are those of the runs themselves.
    name = found["table"][0]["transport"]
    alone = [cw.run(cw.Scenario.load("small.toml").with_(transport=name, seed=seed)) for seed in (1, 2, 3)]
    mean = sum(float(one.slowdown().loc["all", "mean"]) for one in alone) / 3
    assert found["table"][0]["all mean"] == pytest.approx(mean)


def test_what_can_not_be_is_said_before_any_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(SCENARIO)
    assert "write a time such as 90s" in call("advise", "small.toml", "--budget", "soon").err
    assert "is not a transport that can be compared" in call("advise", "small.toml", "--transport", "tcpp").err
    assert "write it like 500KB" in call("advise", "small.toml", "--budget", "20s", "--buffer", "big").err
    Path("page.md").write_text("nothing")
    assert "has no place" in call("advise", "small.toml", "--write", "page.md").err
    assert seconds_of("2h") == 7200
