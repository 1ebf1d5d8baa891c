"""Folders of results that were tampered with, each by a rule from a seed: columns, types, values, names, rows,
whole tables, run.json and scenario.toml. Checksums are put right, as an attacker would.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from pathlib import Path
from typing import Any

import clearway as cw
import pyarrow as pa
import pyarrow.parquet as pq

NUMBERS = [0, 1, 7, 2**31, 2**32 - 1, 2**53, 2**63 - 1, 2**63, 2**64 - 1]
FLOATS = [0.0, -1.0, 1e308, 1e-300, float("nan"), float("inf"), float("-inf")]
NAMES = [
    "", "{0.__class__}", "{}", "{name!r:>99}", "%s%n", "host0", "host99", "leaf0", "<script>alert(1)</script>",
    "\x1b[31mred", "a\nb", "\u202etxt", "$x^2$", "_hidden", "[bold]x[/bold]", "host" + "9" * 5000, "x" * 100_000,
    "../../etc", "'\"`", "Pause node 99, port 99", "Merge old node 0, port 0", "Grant phase 9, round 9, channels 9",
    "root", "compute", "nan", "0", "@{flow}", "None",
]  # fmt: skip
TYPES = [
    pa.int64(), pa.int32(), pa.float32(), pa.float64(), pa.string(), pa.bool_(), pa.uint8(), pa.timestamp("ns"),
    pa.list_(pa.int64()), pa.binary(), pa.null(), pa.uint64(), pa.uint32(), pa.large_string(),
]  # fmt: skip
JSON: list[Any] = [
    None, True, -1, 0, 1.5, 1e308, 10**30, "", "x", "\x1b[2J", "~", [], [1], ["{}"], [{}], {}, {"ok": True},
    [{"name": 1, "ok": True, "detail": []}], [[[]]],
]  # fmt: skip
TOML = [
    "measure = 3", "[[failure]]\nat = 3", "[[failure]]", '[[failure]]\nat = "1ms"\nlink = 5', "traffic = 5",
    '[[failure]]\nat = "99999999999999999999s"\nswitch = "<b>"', "[fabric.torus]\ndims = 5",
    "[measure]\npackets = 5", "[measure]\nports = [5]", "[measure.packets]\nflows = 3", "name = 3",
    '[[failure]]\nat = "{}"\nlink = ["a", "b"]', "fabric = 1", "x = [", '[[failure]]\nat = "1.2.3ms"',
]  # fmt: skip


def sound(place: Path) -> list[Path]:
    """Results with every table between them."""
    tiny = cw.Scenario.load("examples/tiny.toml")
    asked: dict[str, Any] = {
        "flow_control": "pfc", "transport": "dctcp", "entity": [{"name": "all", "hosts": "0"}],
        "measure.arrivals": ["host0"], "measure.packets": {}, "measure.flows": {},
        "measure.events": ["control", "drops"],
        "measure.ports": ["switch0:0"], "job": [{"steps": [{"compute": "5us"}, {"all_reduce": {"bytes": "8KB"}}]}],
        "failure": [{"link": ["host1", "switch0"], "at": "1us", "until": "3us"}],
    }  # fmt: skip
    runs = {
        "tcp": cw.run(tiny.with_(asked), progress=False),
        "harmony": cw.run(tiny.with_({"transport": "harmony", "measure.packets": {}}), progress=False),
        "dcpim": cw.run(tiny.with_({"transport": "dcpim", "measure.events": ["matching"], "measure.packets": {}})),
        "flow": cw.run(tiny.with_({"job": asked["job"]}), level="flow", progress=False),
    }
    return [run.save(place / name) for name, run in runs.items()]


def tampered(chance: random.Random, whole: Path, folder: Path) -> None:
    """A copy of a result with one to three things wrong."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, folder)
    for _ in range(chance.choice([1, 1, 1, 3])):
        how = chance.random()
        if how < 0.1:
            _summary(chance, folder / "run.json")
        elif how < 0.2:
            _scenario(chance, folder / "scenario.toml")
        else:
            paths = sorted(folder.glob("*.parquet"))
            if paths:
                _table(chance, chance.choice(paths), paths)
    put_right(folder)


def put_right(folder: Path) -> None:
    """Writes the checksums of a result's files anew."""
    try:
        info = json.loads((folder / "run.json").read_text())
        if isinstance(info.get("checksums"), dict):
            for path in [*folder.glob("*.parquet"), folder / "scenario.toml"]:
                info["checksums"][path.name] = hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()
            (folder / "run.json").write_text(json.dumps(info))
    except (AttributeError, ValueError):
        pass


def _summary(chance: random.Random, path: Path) -> None:
    info = json.loads(path.read_text())
    key = chance.choice(list(info))
    if chance.random() < 0.2:
        del info[key]
    else:
        info[key] = chance.choice(JSON)
    path.write_text(json.dumps(info))


def _scenario(chance: random.Random, path: Path) -> None:
    lines = path.read_text().split("\n")
    if chance.random() < 0.3:
        lines.insert(0, chance.choice(TOML).partition("\n")[0])
    elif chance.random() < 0.5:
        lines += [chance.choice(TOML)]
    else:
        at = chance.randrange(len(lines))
        lines[at] = lines[at].partition("=")[0] + "= " + chance.choice(["3", "{}", '"{x}"', "[]", "true", "1e400"])
    path.write_text("\n".join(lines))


def _table(chance: random.Random, path: Path, others: list[Path]) -> None:
    table = pq.read_table(path)
    how = chance.randrange(10)
    if how == 0:
        path.unlink()
        return
    if how == 1:
        table = pq.read_table(chance.choice(others))
    elif how == 2:
        table = _rows(chance, table)
    elif how == 3 and table.num_columns > 1:
        table = table.drop_columns([chance.choice(table.column_names)])
    elif how == 4:
        names = list(table.column_names)
        names[chance.randrange(len(names))] = chance.choice(NAMES)
        table = table.rename_columns(names)
    else:
        for _ in range(chance.choice([1, 1, 3])):
            table = _column(chance, table)
    pq.write_table(table, path)


def _rows(chance: random.Random, table: pa.Table) -> pa.Table:
    rows = list(range(table.num_rows))
    how = chance.randrange(5)
    if how == 0:
        rows = []
    elif how == 1:
        rows = rows * 3
    elif how == 2:
        chance.shuffle(rows)
    elif how == 3:
        rows = rows[: chance.randint(0, 2)]
    else:
        rows = [row for row in rows if chance.random() < 0.7]
    return table.take(pa.array(rows, pa.int64()))


def _column(chance: random.Random, table: pa.Table) -> pa.Table:
    at = chance.randrange(table.num_columns)
    column = table.column(at)
    values, kind = column.to_pylist(), column.type
    how = chance.randrange(12)
    if how == 0:
        kind = chance.choice(TYPES)
        values = [None] * len(values) if chance.random() < 0.3 else values
    elif how == 1:
        values = [None if chance.random() < chance.choice([0.1, 1.0]) else value for value in values]
    elif how == 2:
        same = [name for name in table.column_names if table[name].type == kind]
        values = table[chance.choice(same)].to_pylist()
    elif how in (3, 4):
        chance.shuffle(values)
    elif how in (5, 6) and values:
        # Values that another run might have.
        one = chance.choice(values)
        values = [one if chance.random() < 0.5 else value for value in values]
    elif how == 7 and pa.types.is_unsigned_integer(kind):
        values = [None if value is None else max(value + chance.randint(-3, 3), 0) for value in values]
    else:
        odd = _odd(kind)
        some = chance.choice([0.02, 0.3, 1.0])
        one = chance.choice(odd)
        values = [chance.choice([one, one, chance.choice(odd)]) if chance.random() < some else v for v in values]
    try:
        plain = pa.array(values, pa.string() if pa.types.is_dictionary(kind) else kind)
        made = plain.dictionary_encode() if pa.types.is_dictionary(kind) else plain
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        made = pa.array([None if value is None else str(value) for value in values], pa.string())
    return table.set_column(at, table.column_names[at], made)


def _odd(kind: pa.DataType) -> list[Any]:
    if pa.types.is_dictionary(kind) or pa.types.is_string(kind):
        return NAMES
    if pa.types.is_boolean(kind):
        return [True, False]
    if pa.types.is_floating(kind):
        return FLOATS
    return [number for number in NUMBERS if number < 2**kind.bit_width] if pa.types.is_integer(kind) else [None]
