"""The reference of scenario keys: as the schema has them, with something said of each."""

from __future__ import annotations

import re

import key_docs


def test_the_page_is_what_the_schema_says_and_says_something_of_each_key() -> None:
    page = key_docs.page()
    assert page.text() == key_docs.PAGE.read_text(encoding="utf-8"), "python tests/python/key_docs.py"
    assert page.silent == []


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
