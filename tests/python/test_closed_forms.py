"""Every scheme beside what can be derived, by `clearway paper closed-forms`; and Homa beside its paper."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from clearway.papers import homa
from clearway.papers.closed_forms import links, rdma, setting, sharing, tcp, transports
from clearway.papers.figures import Held


def assert_held(held: Held) -> None:
    broken = [check for check, ok in held.checks.items() if not ok]
    assert not broken, broken


@pytest.mark.parametrize("name", setting.names("transport"))
def test_a_transport_alone_and_with_others_takes_what_arithmetic_says(name: str) -> None:
    assert_held(transports.transport(name))


QUICK = [
    tcp.dctcp,
    tcp.swift,
    rdma.dcqcn,
    rdma.timely,
    rdma.hpcc,
    links.pfc,
    links.per_flow_queues,
    links.bfc,
    links.congestion_isolation,
]


@pytest.mark.parametrize(
    "law", [*QUICK, sharing.udp, sharing.rate_limiter, sharing.elastic_switch, sharing.aq], ids=lambda law: law.__name__
)
def test_a_scheme_keeps_the_law_of_its_paper(law: Callable[[], Held]) -> None:
    assert_held(law())


@pytest.mark.slow
@pytest.mark.parametrize(
    "law",
    [tcp.newreno, tcp.cubic_lossy, tcp.cubic_friendly, tcp.illinois, partial(tcp.bbr, (0.001, 0.01))],
    ids=["newreno", "cubic", "friendly", "illinois", "bbr"],
)
def test_a_window_under_random_loss_is_what_its_rule_makes_of_it(law: Callable[[], Held]) -> None:
    assert_held(law())


@pytest.mark.slow
def test_homa_s_short_messages_take_at_most_what_its_paper_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(homa, "OUT", tmp_path)
    [held] = homa.figure_12().held
    assert_held(held)


def test_the_laws_are_those_that_papers_print() -> None:
    assert tcp.aimd_window(1, 0.5, 1.0) == pytest.approx(1.3098, abs=1e-4)  # Ott, Kemperman and Mathis
    # Three flows over two links: the long one and one of the others have a half, then the last has what is left.
    assert list(links.max_min({"a": 1.0, "b": 2.0}, [["a", "b"], ["a"], ["b"]])) == pytest.approx([0.5, 0.5, 1.5])
    assert 0.005 < rdma.dcqcn_rests_at(8, 40.0) < rdma.dcqcn_rests_at(16, 40.0) < 0.02
