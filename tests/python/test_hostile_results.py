"""A result that was tampered with is refused, by file and column, or shown."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import clearway as cw
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from called import call
from clearway.results import read
from hostile_results import put_right, sound, tampered

COMMANDS: list[list[str]] = [
    ["report", "broken", "--out", "page.html"],
    ["explain", "broken", "--flow", "3"],
    ["explain", "broken", "--flow", "1", "--json"],
    ["explain", "broken", "--at", "2us"],
    ["explain", "broken", "--flow", "2", "--picture", "why.svg"],
    ["trace", "broken", "trace.pftrace"],
    ["view", "broken", "--no-open", "--out", "view.html"],
]


def held(place: Path, count: int, first: int = 0) -> None:
    wholes = sound(place / "sound")
    wrong, codes = [], []
    for number in range(first, first + count):
        chance = random.Random(number)
        tampered(chance, chance.choice(wholes), place / "broken")
        command = chance.choice(COMMANDS)
        try:
            done = call(*command, cwd=place)
        except Exception as error:
            wrong.append(f"{number} {command}: {type(error).__name__}: {error}")
            continue
        codes.append(done.code)
        said = done.err.strip().splitlines()
        right = done.code == 0 or (done.code == 2 and len(said) == 1 and said[0].startswith("error: "))
        if not right or "\x1b" in done.out + done.err or ("__class__" in done.out + done.err and "{" not in done.err):
            wrong.append(f"{number} {command}: {done.code}: {done.err[-500:]!r}")
    assert not wrong, f"{len(wrong)} of {count}:\n" + "\n".join(wrong)
    assert codes.count(2) > count / 4 and codes.count(0) > count / 50


def test_tampered_results_are_told_or_shown(tmp_path: Path) -> None:
    held(tmp_path, 60)


@pytest.mark.slow
def test_many_more_tampered_results(tmp_path: Path) -> None:
    held(tmp_path, 2_000)


@pytest.fixture(scope="module")
def wholes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {path.name: path for path in sound(tmp_path_factory.mktemp("sound"))}


def copied(whole: Path, place: Path) -> Path:
    shutil.copytree(whole, place / "r")
    return place / "r"


def changed(folder: Path, table: str, column: str, change: Callable[[list[Any]], list[Any]], kind: Any = None) -> None:
    """Changes a column's values, and puts the checksums right."""
    path = folder / f"{table}.parquet"
    rows = pq.read_table(path)
    found = rows[column]
    values = pa.array(
        change(found.to_pylist()), kind or (pa.string() if pa.types.is_dictionary(found.type) else found.type)
    )
    values = values.dictionary_encode() if pa.types.is_string(values.type) else values
    pq.write_table(rows.set_column(rows.column_names.index(column), column, values), path)
    put_right(folder)


WRONG: list[tuple[str, str, Callable[[list[Any]], list[Any]], Any, str]] = [
    ("packets", "node", lambda of: ["{0.__class__}"] * len(of), None, '"{0.__class__}", but no such node'),
    ("ranks", "host_name", lambda of: ["host{0.__init__.__globals__}"] * len(of), None, "no such node is in links"),
    ("flows", "source", lambda of: ["host99"] * len(of), None, "no such node is in links.parquet"),
    ("flows", "class", lambda of: ["\x1b]0;gone\x07"] * len(of), None, "names have no control characters"),
    ("flows", "class", lambda of: ["\u202egnp.exe"] * len(of), None, "names have no control characters"),
    ("flows", "class", lambda of: ["x" * 10**6] * len(of), None, "has a name of 1,000,000 bytes"),
    ("flows", "src", lambda of: [99] * len(of), None, "hosts are 0 to 7"),
    ("flows", "flow", lambda of: [0] * len(of), None, "a number twice"),
    ("flows", "bytes", lambda of: [-1] * len(of), pa.int64(), '"int64", but should be uint64'),
    ("flows", "bytes", lambda of: [2**64 - 1] * len(of), None, "from 0 to 9,223,372,036,854,775,807"),
    ("flows", "bytes", lambda of: [None] * len(of), None, "rows without a value"),
    ("flows", "slowdown", lambda of: [float("inf")] * len(of), None, "has inf"),
    ("flows", "slowdown", lambda of: [-1.0] * len(of), None, "has -1"),
    ("packets", "flow", lambda of: [10**6] * len(of), None, "no such flow is in flows.parquet"),
    ("packets", "link", lambda of: [10**6] * len(of), None, "links are 0 to 15"),
    ("links", "link", lambda of: of[::-1], None, "not the number of the row"),
    ("links", "tier", lambda of: ["sideways"] * len(of), None, "one of from_host, up, down, to_host"),
    ("critical", "part", lambda of: ["idle"] * len(of), None, "one of compute, message"),
    ("ranks", "job", lambda of: ["other"] * len(of), None, "no such job is in jobs.parquet"),
    ("states", "host", lambda of: [8] * len(of), None, "hosts are 0 to 7"),
    ("states", "state", lambda of: [[1]] * len(of), pa.list_(pa.int64()), "numbers, truth values and names"),
]  # fmt: skip


@pytest.mark.parametrize(("table", "column", "change", "kind", "says"), WRONG)
def test_a_column_that_no_run_writes_is_named(
    wholes: dict[str, Path], tmp_path: Path, table: str, column: str, change: Any, kind: Any, says: str
) -> None:
    folder = copied(wholes["tcp"], tmp_path)
    changed(folder, table, column, change, kind)
    for command in (
        ["trace", folder, tmp_path / "t"],
        ["explain", folder, "--flow", "1"],
        ["view", folder, "--no-open"],
    ):
        done = call(*command)
        assert done.code == 2 and says in done.err and f"{table}.parquet" in done.err and column in done.err, done.err
        assert len(done.err.splitlines()) == 1 and "\x1b" not in done.err


def test_names_of_jobs_are_no_format(wholes: dict[str, Path], tmp_path: Path) -> None:
    """The name of a rank's host was once the format of its tracks, which read what a format may read."""
    folder = copied(wholes["tcp"], tmp_path)
    for table in ("jobs", "ranks", "critical", "collectives"):
        changed(folder, table, "job", lambda of: ["{0.__class__} {}"] * len(of))
    for column in ("from_node", "to_node"):
        changed(folder, "links", column, lambda of: ["{}" if name == "host7" else name for name in of])
    of_packets = ("node", "to_node", "source", "destination")
    ends, named = ("from_node", "to_node"), {"packets": of_packets, "events": of_packets, "ranks": ("host_name",)}
    named |= {"flows": ("source", "destination"), "states": ("host_name",), "congestion": ends, "ports": ends}
    places = [(table, column) for table, columns in named.items() for column in columns]
    for table, column in (place for place in places if (folder / f"{place[0]}.parquet").exists()):
        changed(folder, table, column, lambda of: ["{}" if name == "host7" else name for name in of])
    done = call("trace", folder, tmp_path / "t.pftrace")
    assert done.code == 0, done.err
    content = (tmp_path / "t.pftrace").read_bytes()
    assert b"{0.__class__} {}" in content and b"on {}" in content and b"<class" not in content


def test_what_unpacks_to_more_than_is_free_is_not_unpacked(wholes: dict[str, Path], tmp_path: Path) -> None:
    folder = copied(wholes["tcp"], tmp_path)
    rows = 3_000_000
    pq.write_table(
        pa.table({name: pa.repeat(pa.scalar(1, pa.uint64()), rows) for name in "abcd"}), folder / "x.parquet"
    )
    put_right(folder)
    assert (folder / "x.parquet").stat().st_size < 100_000
    with mock.patch.object(read, "free_bytes", lambda: 100e6):
        done = call("report", folder, "--out", tmp_path / "page.html")
    assert done.code == 2 and "x.parquet: its 3,000,000 rows unpack to 96 MB" in done.err, done.err


def test_text_that_a_file_holds_once_is_held_once(tmp_path: Path) -> None:
    """A column of plain text whose one value is repeated a million times is 64 GB where each has its own."""
    text = pa.array(["x" * 64_000]).dictionary_encode().dictionary
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1_000_000, np.int32)), text)
    pq.write_table(pa.table({"name": column}), tmp_path / "t.parquet", store_schema=False)
    assert pq.read_schema(tmp_path / "t.parquet").field("name").type == pa.string()
    before = pa.total_allocated_bytes()
    table = read.read_table(tmp_path / "t.parquet")
    assert pa.types.is_dictionary(table["name"].type) and pa.total_allocated_bytes() - before < 50_000_000


def test_long_texts_of_a_result_are_not_read(wholes: dict[str, Path], tmp_path: Path) -> None:
    folder = copied(wholes["tcp"], tmp_path)
    info = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(info | {"x": "y" * read.RUN_BYTES_MAX}))
    with pytest.raises(ValueError, match=r"run\.json has more than 16,000,000 bytes"):
        cw.load(folder)


def test_what_a_result_watches_is_read_without_its_scenario(wholes: dict[str, Path], tmp_path: Path) -> None:
    """Reading it as a scenario would read its files, and start the programs of its crates."""
    folder = copied(wholes["tcp"], tmp_path)
    with (folder / "scenario.toml").open("a") as file:
        file.write('[transports.mine]\nfolder = "."\n')
    put_right(folder)
    with mock.patch("clearway.programs.outside.read", side_effect=AssertionError("it was read")):
        assert len(cw.load(folder).queue("switch0:0"))


@pytest.mark.parametrize("text", ['{"paper": 1}', "[]", "{", '{"paper": "dcpim", "figure": "figure-1"}'])
def test_a_record_of_a_figure_that_is_none_is_named(tmp_path: Path, text: str) -> None:
    from clearway.papers import records

    path = tmp_path / records.FOLDER / "dcpim-figure-1.json"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(ValueError, match=r"dcpim-figure-1\.json: "):
        records.load(tmp_path)
