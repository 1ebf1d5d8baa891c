"""`docs/keys/`, every key of a scenario, from the schema that scenarios are read by: one page per table.

As a program: writes the pages, and the schema that editors read.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clearway import _core
from key_examples import Examples

FOLDER = Path("docs/keys")
# The schema for editors: `clearway init` names its address.
SCHEMA = Path("docs/scenario.schema.json")
INDEX = "README.md"
HEAD = """# Every key of a scenario

A scenario is a TOML file. Every key has a default, so write only the keys that you change. `clearway run --set
KEY=VALUE` sets a key by its path: `--set fabric.leaf_spine.racks=4`. A list takes a position or a name: `--set
traffic.0.flows=100`, `--set traffic.web.flows=100`.

| type | written as |
| --- | --- |
| duration | `"200ns"`, `"5.8us"` |
| rate | `"100Gbps"` |
| size | `"1500B"`, `"64KB"`, `"16MiB"` |
| tolerance | `"100ppm"` |

The minimum and maximum of a quantity end in `_min` and `_max`. A parameter that a paper or standard names, such as
Swift's `max_cwnd`, keeps that name. A renamed key is also read by its earlier name, with a line of advice.

[Editors](../commands.md#editors) with a TOML language server complete keys and show these descriptions.
"""
MADE = "*These pages are generated from `clearway schema` by `python tests/python/key_docs.py`.*"
PLAIN = {"Tolerance": "tolerance", "Rate": "rate", "Duration": "duration", "Bytes": "size", "Time": "duration"}
KINDS = {"integer": "integer", "number": "number", "boolean": "true or false", "string": "text", "null": ""}

# Of names that the schema says nothing of.
_ALL = "All points in which the authors' program departs from the paper."
_LATER = "Those, and the points of its later version."
_NONE = "The paper to the letter: no departure."
WORDS = {"published": _ALL, "authors_2022": _ALL, "authors_2023": _LATER, "paper": _NONE}

# Links of rustdoc, which lead nowhere on the page.
_RUST = re.compile(r"\[(`[^`\]]+`)\](?:\([\w:]+\))?")

# A default that only the description has.
_DEFAULT = re.compile(r"Default: (.+?)(?:\.(?=\s|$)|$)", re.S)

Schema = dict[str, Any]


class Page:
    """The pages: a section for each table and each choice, under the shortest path that leads to it."""

    def __init__(self, schema: Schema) -> None:
        self._types: Schema = schema["$defs"]
        # By the name of a type, its path; by path, its section.
        self._paths: dict[str, str] = {}
        self._sections: dict[str, list[str]] = {}
        # Keys that nothing is said of, and keys without an example.
        self.silent: list[str] = []
        self.bare: list[str] = []
        self._examples = Examples(schema)
        self._schemes = {row["name"]: f"{row['title']}: {row['summary']}" for row in _core.schemes()}
        # Sections to be written, so that a type is at the shortest path that leads to it.
        self._open: deque[tuple[Any, str, Schema]] = deque([(self._table, "", schema)])
        while self._open:
            write, path, of = self._open.popleft()
            write(path, of)

    def files(self) -> dict[str, str]:
        """The text of each page by its file name; sections are in the order of paths."""
        pages: dict[str, list[str]] = {}
        for path in sorted(self._sections):
            pages.setdefault(file_of(path), []).extend(self._sections[path])
        listed = sorted({_anchor(path): file_of(path) for path in self._sections}.items())
        homes = dict(listed)
        texts = {}
        for name, lines in pages.items():
            head = [HEAD] if name == INDEX else [f"# Keys of `{table_of(name)}`", ""]
            text = "\n".join([*head, *lines, *([MADE] if name == INDEX else [])])

            def place(link: re.Match[str], here: str = name) -> str:
                there = homes[link[1]]
                return f"](#{link[1]})" if there == here else f"]({there}#{link[1]})"

            texts[name] = re.sub(r"\]\(#([^)]+)\)", place, text).rstrip() + "\n"
        return texts

    def _resolved(self, schema: Schema) -> Schema:
        while "$ref" in schema:
            schema = self._types[_name(schema)]
        return schema

    def _alternatives(self, schema: Schema) -> Iterator[tuple[Schema, str]]:
        """The values that may stand in a place, with the description of each."""
        said = schema.get("description", "")
        found = self._resolved(schema)
        choices = found.get("oneOf") or found.get("anyOf")
        if not choices or _name(schema) in PLAIN:
            yield (schema if _name(schema) in PLAIN else found), said or found.get("description", "")
            return
        for choice in choices:
            for one, words in self._alternatives(choice):
                yield one, choice.get("description") or words

    def _takes(self, path: str, schema: Schema) -> str:
        """The type of a key, in a cell; sections for types that need more are begun."""
        if (plain := PLAIN.get(_name(schema))) is not None:
            return plain
        name, found = _name(schema), self._resolved(schema)
        if found.get("type") == "array" or (isinstance(found.get("type"), list) and "array" in found["type"]):
            items = found.get("items", {})
            return f"list of {self._takes(path, items)}" if items else "list"
        options = [(one, said) for one, said in self._alternatives(schema) if one.get("type") != "null"]
        if len(options) == 1 and "properties" in options[0][0] and "required" not in found.get("oneOf", [{}])[0]:
            return self._link(name or path, path, options[0][0], self._table)
        if len(options) == 1 and "properties" not in options[0][0]:
            return _plain(options[0][0])
        if name or any("properties" in one or "const" in one or "enum" in one for one, _ in options):
            return self._link(name or path, path, schema, self._choice)
        return " or ".join(dict.fromkeys(_plain(one) for one, _ in options))

    def _link(self, name: str, path: str, schema: Schema, write: Any) -> str:
        """A link to the section of a type, which is written the first time."""
        if name not in self._paths:
            self._paths[name] = path
            self._open.append((write, path, schema))
        return f"[{self._paths[name]}](#{_anchor(self._paths[name])})"

    def _table(self, path: str, schema: Schema) -> None:
        """A section for a table of keys."""
        section = self._begin(path, schema)
        section += ["| key | takes | default | example | meaning |", "| --- | --- | --- | --- | --- |"]
        properties = self._resolved(schema)["properties"]
        for key, value in properties.items():
            inner = f"{path}.{key}" if path else key
            takes = self._takes(inner, value)
            meaning = value.get("description") or self._resolved(value).get("description", "")
            if not meaning:
                self.silent.append(inner)
            if not (example := self._examples.of(properties, key)):
                self.bare.append(inner)
            default = "needed" if key in self._resolved(schema).get("required", []) else self._default(value, meaning)
            section.append(f"| `{key}` | {takes} | {default} | `{_cell(example)}` | {_cell(meaning)} |")
        section.append("")

    def _default(self, schema: Schema, meaning: str) -> str:
        """The default of a key: as the schema has it, or else as its description says."""
        default = schema.get("default")
        if default is not None and not isinstance(default, dict) and len(json.dumps(default)) <= 40:
            return f"`{json.dumps(default)}`"
        if said := _DEFAULT.search(meaning):
            return _cell(said[1])
        inner = [one for one, _ in self._alternatives(schema) if "properties" in one]
        return "that of each key" if len(inner) == 1 and not inner[0].get("required") else "none"

    def _choice(self, path: str, schema: Schema) -> None:
        """A section for one of several."""
        section = self._begin(path, schema)
        section += ["| one of | meaning |", "| --- | --- |"]
        both = []
        for one, said in self._alternatives(schema):
            if one.get("type") == "null":
                continue
            for value in one.get("enum", [one["const"]] if "const" in one else []):
                if not said:
                    both.append(value)
                else:
                    section.append(f"| `{json.dumps(value)}` | {_cell(said)} |")
            if len(one.get("properties", {})) == 1 and one.get("required") == list(one["properties"]):
                [(key, value)] = one["properties"].items()
                takes = self._takes(f"{path}.{key}", value)
                words = said or value.get("description") or self._resolved(value).get("description", "")
                # A scheme's title says more than its settings do; a format of files may have a scheme's name.
                if not path.endswith(".trace"):
                    words = self._schemes.get(key, words)
                if key in both:
                    both.remove(key)
                    section.append(f'| `"{key}"`, or `{{ {key} = ... }}`: {takes} | {_cell(words)} |')
                    continue
                if not words:
                    self.silent.append(f"{path}.{key}")
                section.append(f"| `{{ {key} = ... }}`: {takes} | {_cell(words)} |")
            elif "properties" in one:
                section.append(
                    f"| {self._link(f'{path} table', f'{path} (table)', one, self._table)} | {_cell(said)} |"
                )
            elif "enum" not in one and "const" not in one:
                takes = self._takes(f"{path} (list)", one) if one.get("type") == "array" else _plain(one)
                section.append(f"| {takes} | {_cell(said)} |")
        section += [
            f"| `{json.dumps(name)}` | {_cell(self._schemes.get(name) or WORDS.get(name, ''))} |" for name in both
        ]
        self.silent += [f"{path}: {name}" for name in both if name not in self._schemes and name not in WORDS]
        section.append("")

    def _begin(self, path: str, schema: Schema) -> list[str]:
        section = self._sections[path] = [f"## `{path}`" if path else "## The scenario", ""]
        said = self._resolved(schema).get("description", "")
        if said and not said.startswith("What the derived reader"):
            section += [_RUST.sub(r"\1", said).replace("\n\n", "\0").replace("\n", " ").replace("\0", "\n\n"), ""]
        return section


def file_of(path: str) -> str:
    """The page that has the section of a path: one per table of the scenario, and one per transport."""
    parts = re.sub(r" \(.*\)$", "", path).split(".")
    if parts == [""]:
        return INDEX
    return f"{'-'.join(parts[:2]) if parts[0] == 'transport' else parts[0]}.md"


def table_of(name: str) -> str:
    """The path of the table that a page describes."""
    return name.removesuffix(".md").replace("transport-", "transport.")


def _name(schema: Schema) -> str:
    return str(schema.get("$ref", "")).rsplit("/", 1)[-1]


def _plain(schema: Schema) -> str:
    if (known := PLAIN.get(_name(schema))) is not None:
        return known
    kinds = schema.get("type", "")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    return " or ".join(KINDS.get(kind, kind) for kind in kinds if KINDS.get(kind, kind))


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", _RUST.sub(r"\1", text)).replace("|", "\\|")


def _anchor(path: str) -> str:
    return re.sub(r"[^a-z0-9_ -]", "", path.lower()).replace(" ", "-")


def schema() -> str:
    """The published schema."""
    return json.dumps(json.loads(_core.schema()), indent=1) + "\n"


def page() -> Page:
    """The pages as the schema has them."""
    return Page(json.loads(_core.schema()))


if __name__ == "__main__":
    written = page().files()
    for old in FOLDER.glob("*.md"):
        old.unlink()
    for name, text in written.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    SCHEMA.write_text(schema(), encoding="utf-8")
