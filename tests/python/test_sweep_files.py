"""A sweep's file may come from any source: each is a sweep, or an error that says where."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest
from clearway import ScenarioError
from clearway.sweeps.file import CLUSTER, KEYS, LONG, RANGE, load
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

TINY = """
fabric.star = { hosts = 4 }
measure = { end = "10us", interval = "0s" }
[[traffic]]
name = "a"
sizes.constant = "3KB"
arrivals = "all_at_once"
flows = 2
"""
VARIED = ("seed", "transport", "fabric.star.hosts", "host.mtu", "level", "load", "traffic.0.flows", "scenario", "name")
ODD_WORDS = ("", ".", "..", "/", "[red]", "\u202e", "{0.__class__}", "a" * 1_000, "1e400s", "-5us", "0x10")
WORDS = st.sampled_from(["dctcp", "udp", "packet", "flow", "tiny.toml", "1500B", "1us", "8us", *ODD_WORDS])
NUMBERS = st.sampled_from([0, 1, 2, 4, 8, -1, 2**32, 2**63 - 1, 1e-300, 0.5, 1e308, float("inf"), float("nan")])
LEAVES = st.one_of(WORDS, NUMBERS, st.booleans(), st.just(datetime.date(1979, 5, 27)))
KEY = st.sampled_from([*VARIED, *KEYS, *LONG, *RANGE, *CLUSTER, "args", "python", "", "a b", "\u202e"])
ANY = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEY, inner, max_size=4))


def _table(keys: tuple[str, ...], values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({}, optional=dict.fromkeys(keys, values))


SPANS = _table(RANGE + LONG, NUMBERS | WORDS | st.lists(LEAVES, max_size=4))
VALUES = st.one_of(st.lists(LEAVES, min_size=1, max_size=4), SPANS, ANY)
TABLES = _table(VARIED, VALUES)
FILES = st.fixed_dictionaries(
    {"scenario": st.one_of(st.just("tiny.toml"), st.just("tiny.toml"), ANY)},
    optional={
        "name": WORDS | ANY,
        "set": _table(VARIED, LEAVES) | ANY,
        "vary": TABLES | ANY,
        "zip": st.lists(TABLES, max_size=2) | ANY,
        "skip": st.lists(_table(("hosts", "seed", "transport", "level", "scenario"), ANY), max_size=2) | ANY,
        "store": WORDS | ANY,
        "cluster": _table(CLUSTER, ANY) | ANY,
    },
)


def _toml(value: Any) -> str:
    """A value as a file has it."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{json.dumps(key)} = {_toml(one)}' for key, one in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value) if isinstance(value, str | bool) else str(value)


def _is_said(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    try:
        sweep = load(path, path.parent / "swept", None)
    except ScenarioError as error:
        assert error.message and error.file, repr(error)
    else:
        assert sweep.points


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a scenario."""
    folder = tmp_path_factory.mktemp("sweeps")
    (folder / "tiny.toml").write_text(TINY, encoding="utf-8")
    return folder / "sweep.toml"


@settings(max_examples=300, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(file=FILES)
def test_whatever_a_sweep_file_says_it_is_a_sweep_or_an_error_that_says_where(
    place: Path, file: dict[str, Any]
) -> None:
    _is_said(place, "\n".join(f"{key} = {_toml(value)}" for key, value in file.items()))


@settings(max_examples=200, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    at=st.integers(0, 400),
    length=st.integers(0, 30),
    instead=st.text(max_size=12) | st.sampled_from(["[", "{", '"""', "= ="]),
)
@example(at=0, length=0, instead="[" * 10_000)
@example(at=0, length=0, instead="a = " + "[" * 10_000)
def test_whatever_is_put_into_a_sweep_file_it_is_read_or_refused(
    place: Path, at: int, length: int, instead: str
) -> None:
    text = (
        'name = "hosts"\nscenario = "tiny.toml"\nstore = "kept"\n[set]\nseed = 2\n[vary]\n'
        'fabric.star.hosts = { from = 2, to = 4 }\nlevel = ["packet", "flow"]\n[[zip]]\ntransport = ["dctcp", "udp"]\n'
        'host.mtu = { values = ["1500B", "9000B"], labels = ["small", "jumbo"] }\n[[skip]]\nlevel = "flow"\nhosts = 2\n'
    )
    at %= len(text)
    _is_said(place, text[:at] + instead.encode(errors="ignore").decode() + text[at + length :])
