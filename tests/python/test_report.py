from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import clearway as cw


@pytest.fixture(scope="session")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> cw.Comparison:
    scenario = cw.Scenario.load("examples/dcpim-vs-tcp.toml").with_({"traffic.0.flows": 150, "measure.end": "1ms"})
    return cw.compare(scenario, ["dcpim", "udp"], folder=tmp_path_factory.mktemp("compared"))


@pytest.fixture(scope="session")
def page(comparison: cw.Comparison, tmp_path_factory: pytest.TempPathFactory) -> str:
    return comparison.report(tmp_path_factory.mktemp("report") / "report.html").read_text()


class Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.external: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "link", "iframe", "img", "object", "embed"), tag
        for name, value in attributes:
            if name in ("href", "src", "xlink:href", "srcset", "data") and not (value or "").startswith("#"):
                self.external.append(f"{name}={value}")


def test_the_page_needs_no_network(page: str) -> None:
    links = Links()
    links.feed(page)
    assert links.external == []
    assert "@import" not in page and not re.search(r"url\((?!['\"]?#)", page)


def test_the_page_shows_all_there_is_to_a_comparison(page: str, comparison: cw.Comparison) -> None:
    for heading in ("Summary", "Slowdown by flow size", "Completion times", "Where time went", "Network over time"):
        assert f"<h2>{heading}</h2>" in page
    for result in comparison.results:
        assert result.digest is not None and result.digest in page
    assert page.count("<svg") == 5
    assert "not delivered" in page, "1 ms is too short for all, and the page says so"
    assert "[transport.dcpim]" in page and "+ [transport.udp]" in page


def test_names_are_text_and_not_markup(result: cw.Result, tmp_path: Path) -> None:
    odd = cw.Result("<script>alert(1)</script>", result.tables, result.info, result.scenario_toml)
    text = odd.report(tmp_path / "odd.html").read_text()
    assert "<script" not in text and "&lt;script&gt;" in text


def test_a_run_without_a_single_completed_flow_has_a_page(tmp_path: Path, scenario: cw.Scenario) -> None:
    result = cw.run(scenario.with_({"measure.end": "1ns", "measure.interval": "0s"}))
    assert result.unfinished == 200
    assert "not started" in result.report(tmp_path / "none.html").read_text()
    assert result.goodput() == 0


def test_a_scheme_keeps_its_colour(comparison: cw.Comparison) -> None:
    from clearway._plots import colours

    both = dict(zip((result.name for result in comparison.results), colours(comparison.results)))
    assert len(set(both.values())) == 2
    for result in comparison.results:
        assert colours([result]) == [both[result.name]]


def test_the_table_has_a_row_a_run(comparison: cw.Comparison) -> None:
    table = comparison.table()
    assert list(table.index) == ["dcpim", "udp"]
    assert table.loc["dcpim", "short mean"] >= 1
    assert table.loc["udp", "unfinished"] == comparison.results[1].unfinished


def test_pictures_are_figures(result: cw.Result, tmp_path: Path) -> None:
    pictures = (
        result.plot.slowdown(),
        result.plot.fct_cdf(),
        result.plot.utilisation(),
        result.plot.queues(),
        result.plot.where_time_went(),
    )
    for picture in pictures:
        assert picture.svg().startswith("<svg")
    pictures[0].savefig(tmp_path / "slowdown.png")


def test_kept_runs_are_not_run_again(tmp_path: Path, scenario: cw.Scenario) -> None:
    first = cw.compare(scenario, ["udp"], folder=tmp_path)
    kept = cw.compare(scenario, ["udp"], folder=tmp_path, keep=True)
    assert kept.results[0].info == first.results[0].info
    other = cw.compare(scenario.with_(seed=2), ["udp"], folder=tmp_path, keep=True)
    assert other.results[0].digest != first.results[0].digest


def test_runs_of_one_name_are_kept_apart(tmp_path: Path, scenario: cw.Scenario) -> None:
    comparison = cw.compare([scenario, scenario.with_(seed=2)], folder=tmp_path)
    assert [result.name for result in comparison.results] == ["tiny", "tiny 2"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tiny", "tiny-2"]
