"""The reference of scenario keys: as the schema has them, with something said of each."""

from __future__ import annotations

import re
from pathlib import Path

import clearway as cw
import key_docs
import key_examples


def test_the_page_is_what_the_schema_says_and_says_something_of_each_key() -> None:
    page = key_docs.page()
    written = {path.name: path.read_text(encoding="utf-8") for path in key_docs.FOLDER.glob("*.md")}
    assert page.files() == written, "python tests/python/key_docs.py"
    assert key_docs.schema() == key_docs.SCHEMA.read_text(encoding="utf-8"), "python tests/python/key_docs.py"
    assert page.silent == []
    assert page.bare == [], "an example in a shipped scenario, or in tests/python/keys.toml"


def test_every_key_has_what_it_takes_a_default_an_example_and_a_meaning() -> None:
    text, keys = "\n".join(key_docs.page().files().values()), 0
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


def test_a_new_scenario_tells_editors_where_its_schema_is() -> None:
    first = (Path(cw.__file__).parent / "cli/init.toml").read_text(encoding="utf-8").splitlines()[0]
    assert first == f"#:schema https://raw.githubusercontent.com/clearway/clearway/main/{key_docs.SCHEMA.as_posix()}"
    assert key_docs.SCHEMA.is_file()


def test_scenarios_of_examples_can_be_run() -> None:
    for scenario in key_examples.others():
        try:
            scenario.check()
        except cw.ScenarioError as error:
            raise AssertionError(f"tests/python/keys.toml: [{scenario.name}]: {error}") from None


def test_links_lead_to_sections_and_the_keys_of_issues_are_there() -> None:
    files = key_docs.page().files()
    for name, text in files.items():
        for there, place in re.findall(r"\]\(([\w.-]*)#([^)]*)\)", text):
            if there.startswith(".."):
                continue
            titles = re.findall(r"^## (.*)$", files[there or name], re.M)
            assert place in {key_docs._anchor(title.strip("`")) for title in titles}, (name, there, place)
    text = "\n".join(files.values())
    for section in ("failure", "fabric.file", "measure.packets", "transport.dcpim", "traffic.arrivals.poisson"):
        assert f"## `{section}`" in text, section
    for key in ("trace", "resubmit"):
        assert f"| `{key}` |" in text, key
    # A key takes something, and something is said of each value.
    assert re.findall(r"^\| `[^`|]*` \|  \|.*$", text, re.M) == []
    assert "array" not in {cell.strip() for line in text.splitlines() for cell in line.split("|")}
