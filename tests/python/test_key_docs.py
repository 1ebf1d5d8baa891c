"""The reference of scenario keys: as the schema has them, with something said of each."""

from __future__ import annotations

import re

import clearway as cw
import key_docs
import key_examples


def test_the_page_is_what_the_schema_says_and_says_something_of_each_key() -> None:
    page = key_docs.page()
    assert page.text() == key_docs.PAGE.read_text(encoding="utf-8"), "python tests/python/key_docs.py"
    assert page.silent == []
    assert page.bare == [], "an example in a shipped scenario, or in tests/python/keys.toml"


def test_every_key_has_what_it_takes_a_default_an_example_and_a_meaning() -> None:
    text, keys = key_docs.page().text(), 0
    for section in re.split(r"^## ", text, flags=re.M):
        if "| key | takes | default | example | meaning |" not in section:
            continue
        for row in re.findall(r"^\| `.*$", section, re.M):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
            key, takes, default, example, meaning = cells
            assert takes and default and meaning, row
            # Its line begins with the key, or opens its table.
            assert re.match(rf"`({re.escape(key.strip('`'))} = .|\[+{re.escape(key.strip('`'))}\]+`)", example), row
            keys += 1
    assert keys > 400


def test_scenarios_of_examples_can_be_run() -> None:
    for scenario in key_examples.others():
        try:
            scenario.check()
        except cw.ScenarioError as error:
            raise AssertionError(f"tests/python/keys.toml: [{scenario.name}]: {error}") from None


def test_links_lead_to_sections_and_the_keys_of_issues_are_there() -> None:
    text = key_docs.page().text()
    titles = {key_docs._anchor(title.strip("`")) for title in re.findall(r"^## (.*)$", text, re.M)}
    links = set(re.findall(r"\]\(#([^)]*)\)", text))
    assert links <= titles, links - titles
    for section in ("failure", "fabric.file", "measure.packets", "transport.dcpim", "traffic.arrivals.poisson"):
        assert f"## `{section}`" in text, section
    for key in ("trace", "resubmit"):
        assert f"| `{key}` |" in text, key
    # A key takes something, and something is said of each value.
    assert re.findall(r"^\| `[^`|]*` \|  \|.*$", text, re.M) == []
    assert "array" not in {cell.strip() for line in text.splitlines() for cell in line.split("|")}
