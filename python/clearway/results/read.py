"""Reads the folder of a result, which may come from another person: sizes are bounded, and errors name file, table and
column.

Everything that the package later takes for granted of a result is checked here, once: the columns of `tables.py` with
their types, that numbers and names are such as a run writes, and that what one table says of another is there.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from clearway.errors import CONTROL, ResultError, plain
from clearway.reports.spec import SPEC
from clearway.results.tables import FLOW_LEVEL, LINKS_LEVEL, TABLES
from clearway.scenarios.forecast import free_bytes

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

RUN_BYTES_MAX = 16_000_000
"""Most bytes of a run.json: it has a line for each check and warning."""
SCENARIO_BYTES_MAX = 64_000_000
"""Most bytes of a scenario.toml, as of a scenario that is run."""
NAME_BYTES_MAX = 1 << 16
"""Most bytes of a name in a table."""
WHOLE_MAX = (1 << 63) - 1
"""The largest number of a table. Times in it are 106 days, and readers subtract them."""
FOLDED = 4
"""The memory of a table while it is worked with, over its size as it was written."""

Tables = dict[str, pa.Table]


def read(folder: Path) -> tuple[dict[str, Any], str, Tables]:
    """The summary, the scenario and the tables of a result; `ResultError` says what is missing or damaged."""
    try:
        info, toml, paths = _texts(folder)
    except (OSError, ValueError, RecursionError) as error:
        raise ResultError(f"{folder} is not the result of a run: {_why(error)}") from None
    try:
        _check_info(info)
        _check_scenario(toml)
        free = free_bytes()
        tables = {path.stem: _table(path, info.get("checksums", {}), free) for path in paths}
        check_tables(tables, info)
    except (OSError, ValueError, RecursionError) as error:
        raise ResultError(f"{folder} is damaged: {_why(error)}") from None
    return info, toml, tables


def read_head(folder: Path) -> tuple[dict[str, Any], str]:
    """The summary and the scenario of a result, without its tables; `ResultError` says what is missing or damaged."""
    try:
        info, toml, _ = _texts(folder)
        _check_info(info)
        _check_scenario(toml)
    except (OSError, ValueError, RecursionError) as error:
        raise ResultError(f"{folder} is damaged: {_why(error)}") from None
    return info, toml


def check_whole(folder: Path) -> None:
    """Raises `ResultError` if a file of a result that was saved is not what it was then. Reads no table."""
    try:
        info, toml, paths = _texts(folder)
        _check_info(info)
        _check_scenario(toml)
        if info.get("checksum") != checksum(info):
            raise ValueError("run.json: it is not what was written (checksum of run.json)")
        sums = info.get("checksums", {})
        for name in sorted({*sums, *(path.name for path in paths)}):
            _check_sum(folder / name, sums)
    except (OSError, ValueError, RecursionError) as error:
        raise ResultError(f"{folder} is damaged: {_why(error)}") from None


def checksum(info: Mapping[str, Any]) -> str:
    """A checksum of a summary without its own."""
    said = json.dumps({key: value for key, value in info.items() if key != "checksum"}, sort_keys=True)
    return hashlib.blake2b(said.encode(), digest_size=16).hexdigest()


def sum_of(path: Path) -> str:
    """A checksum of a file."""
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def write_table(table: pa.Table, path: Path) -> None:
    """Writes a table with a checksum for each page."""
    pq.write_table(table, path, compression="zstd", write_page_checksum=True)


def read_table(path: Path, free: float | None = None) -> pa.Table:
    """Reads a table and verifies its checksums; `ValueError` names a damaged file, or one that unpacks to more than
    fits.
    """
    free = free_bytes() if free is None else free
    try:
        # Not by path: if that is a folder, more than this file would be read. With Arrow's own file: a Python file may
        # be closed by one of Arrow's threads while Python exits, which aborts the process.
        with pa.OSFile(str(path)) as file:
            names = _check_size(pq.ParquetFile(file), free)
            # Text that is kept once in the file is kept once in memory, too.
            parquet = pq.ParquetFile(file, read_dictionary=names, page_checksum_verification=True)
            table = parquet.read(use_threads=False)
        table.validate(full=True)
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, pa.ArrowMemoryError):
            raise
        raise ValueError(f"{path.name}: {_why(error)}") from None
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None
    return table


def _check_size(parquet: pq.ParquetFile, free: float) -> list[str]:
    """Checks what a file unpacks to, before it is unpacked. Returns the columns of text."""
    told, schema = parquet.metadata, parquet.schema_arrow
    width, names = 0.0, []
    for field in schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_string(kind):
            names.append(field.name)
            width += 4
        elif pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
            width += kind.bit_width / 8
        else:
            raise ValueError(
                f"the column {quoted(field.name)} is {quoted(field.type)}, but columns of results are numbers, truth "
                "values and names"
            )
    if len(set(schema.names)) < len(schema.names):
        raise ValueError("two of its columns have one name")
    groups = [told.row_group(group) for group in range(told.num_row_groups)]
    stored = sum(
        max(group.column(column).total_uncompressed_size, 0) for group in groups for column in range(told.num_columns)
    )
    unpacked = max(told.num_rows * width, 0) + stored
    if unpacked * FOLDED > free:
        raise ValueError(
            f"its {told.num_rows:,} rows unpack to {unpacked / 1e6:,.0f} MB, and work with them takes {FOLDED} times "
            f"as much: {free / 1e6:,.0f} MB of memory are free; close other programs, or use a machine with more"
        )
    return names


def _why(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    where = f"{Path(str(error.filename)).name}: " if isinstance(error, OSError) and error.filename else ""
    return where + plain(text.splitlines()[0] if text else type(error).__name__)


def quoted(value: object) -> str:
    """A value as an error shows it."""
    said = json.dumps(value, default=str)
    return said if len(said) <= 60 else f"{said[:60]}..."


def _texts(folder: Path) -> tuple[Any, str, list[Path]]:
    """The content of run.json and scenario.toml of a folder, and the files of its tables."""
    paths = sorted(folder.glob("*.parquet"))
    for path in (folder / "run.json", folder / "scenario.toml", *paths):
        # A pipe or a device might never end.
        if os.path.lexists(path) and not path.is_file():
            raise ValueError(f"{plain(path.name)} is not a file")
    texts = [_text(folder / "run.json", RUN_BYTES_MAX), _text(folder / "scenario.toml", SCENARIO_BYTES_MAX)]
    try:
        info = json.loads(texts[0])
    except (ValueError, RecursionError) as error:
        raise ValueError(f"run.json: {_why(error)}") from None
    return info, texts[1], paths


def _text(path: Path, most: int) -> str:
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"{path.name} has more than {most:,} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path.name}: {error}") from None


def _check_sum(path: Path, sums: Mapping[str, str]) -> None:
    """Checks that a file is unchanged: the footer of a Parquet file has no checksum of its own."""
    try:
        found = sum_of(path)
    except FileNotFoundError:
        raise ValueError(f"{path.name} is missing") from None
    if sums.get(path.name, found) != found:
        raise ValueError(
            f"{path.name}: its checksum is {found}, but was {quoted(sums[path.name])} when it was written (checksums "
            "of run.json)"
        )


def _table(path: Path, sums: Mapping[str, str], free: float) -> pa.Table:
    if not re.fullmatch(r"[a-z_]{1,64}", path.stem):
        raise ValueError(f"{quoted(path.name)} is no name of a table, which has small letters and underscores")
    _check_sum(path, sums)
    return read_table(path, free)


def columns_of(table: str, level: str) -> dict[str, str]:
    """The columns that a table has at a level, with their types; none if nothing is known of it."""
    columns = TABLES.get(table, {})
    if level != "packet" and table in FLOW_LEVEL:
        columns = {column: columns[column] for column in FLOW_LEVEL[table]}
    return columns | LINKS_LEVEL.get(table, {}) if level == "links" else columns


def _check_column(column: pa.ChunkedArray, kind: str) -> None:
    """Checks that a column has the type, and values such as a run writes."""
    found, wanted = column.type, kind.removesuffix("?")
    is_name = pa.types.is_dictionary(found) and pa.types.is_string(found.value_type)
    if wanted != ("name" if is_name else str(found)):
        raise ValueError(f"is {quoted(found)}, but should be {wanted}")
    if column.null_count and not kind.endswith("?"):
        raise ValueError(f"has {column.null_count:,} rows without a value, but every row has one")
    if is_name:
        for chunk in column.chunks:
            _check_names(chunk.dictionary)
    elif wanted == "uint64":
        import pyarrow.compute as pc

        most = pc.max(column).as_py()
        if most is not None and most > WHOLE_MAX:
            raise ValueError(f"has {most:,}, but its values are from 0 to {WHOLE_MAX:,}")
    elif wanted == "double":
        values = column.to_numpy()
        wrong = values[(values < 0) | np.isinf(values)]
        if len(wrong):
            raise ValueError(f"has {wrong[0]:g}, but its values are from 0, or NaN where there is none")


def _check_names(names: pa.Array) -> None:
    import pyarrow.compute as pc

    if names.null_count:
        raise ValueError("has a name that is missing")
    longest = pc.max(pc.binary_length(names)).as_py()
    if longest is not None and longest > NAME_BYTES_MAX:
        raise ValueError(f"has a name of {longest:,} bytes, but names have at most {NAME_BYTES_MAX:,}")
    for name in names.to_pylist():
        if CONTROL.search(name):
            raise ValueError(f"has the name {quoted(name)}, but names have no control characters")


# The keys of run.json that the package reads, with their types.
_INFO: dict[str, type | tuple[type, ...]] = {
    "name": str, "seed": int, "ended": str, "end_ps": int, "hosts": int, "flows": int, "flows_completed": int,
    "bdp_bytes": int, "audit": list, "cpu_seconds": (int, float), "wall_seconds": (int, float),
    "peak_memory_bytes": int,
}  # fmt: skip
# Those that not every result has.
_MORE_INFO: dict[str, type | tuple[type, ...]] = {"packet_hops": int, "digest": str, "commit": str, "source": str}
# Those of its `rest`, which flows without a row bring to the totals.
_REST = ("flows", "delivered_bytes", "first_start_ps", "last_delivery_ps", "sent_packets", "resent_packets")
_AT_PACKET_LEVEL = ("packet_hops",)
_FROM_1 = ("bdp_bytes",)
_BELOW_2_63 = ("end_ps", "bdp_bytes", "hosts", "flows", "flows_completed")


def _check_info(info: Any) -> None:
    if not isinstance(info, dict):
        raise ValueError(f"run.json: {quoted(info)} is not a JSON object")
    level = info.get("level", "packet")
    if level not in ("packet", "links", "flow"):
        raise ValueError(f"run.json: level is {quoted(level)}, but should be packet, links or flow")
    for key in (*_INFO, *(_AT_PACKET_LEVEL if level == "packet" else ())):
        if key not in info:
            raise ValueError(f"run.json: {key} is missing")
    for key, kind in (_INFO | _MORE_INFO).items():
        if key in _INFO or info.get(key) is not None:
            _check_value(key, info[key], kind)
    if info["flows_completed"] > info["flows"]:
        raise ValueError(f"run.json: flows_completed is {info['flows_completed']:,} of {info['flows']:,} flows")
    rest = info.get("rest", {})
    if not isinstance(rest, dict):
        raise ValueError(f"run.json: rest is {quoted(rest)}, but should be an object of whole numbers")
    for key in _REST:
        if rest.get(key) is not None:
            _check_value(key, rest[key], int)
    for finding in info["audit"]:
        if not (
            isinstance(finding, dict)
            and isinstance(finding.get("ok"), bool)
            and all(isinstance(finding.get(key), str) and _is_said(finding[key]) for key in ("name", "detail"))
        ):
            raise ValueError(f"run.json: audit has {quoted(finding)}, but should have objects with name, ok and detail")
    warnings = info.get("warnings", [])
    if not isinstance(warnings, list) or not all(isinstance(said, str) and _is_said(said) for said in warnings):
        raise ValueError(f"run.json: warnings is {quoted(warnings)}, but should be a list of texts")
    sums = info.get("checksums", {})
    if not isinstance(sums, dict) or not all(isinstance(value, str) for value in sums.values()):
        raise ValueError("run.json: checksums should be an object of texts")
    if any(Path(name).name != name for name in sums):
        raise ValueError("run.json: checksums should be of files beside it")


def _is_said(text: str) -> bool:
    """Whether a text of several lines has nothing that a terminal obeys."""
    return not CONTROL.search(text.replace("\n", ""))


def _check_value(key: str, value: Any, kind: type | tuple[type, ...]) -> None:
    right = isinstance(value, kind) and not isinstance(value, bool)
    if right and isinstance(value, int | float):
        right = (key in _FROM_1) <= value < (1 << 63 if key in _BELOW_2_63 else 1 << 64)
    if right and isinstance(value, str):
        right = len(value) <= NAME_BYTES_MAX and not CONTROL.search(value)
    if not right:
        words = {str: "text", list: "a list", int: "a whole number from 0"}
        wanted = words[kind] if isinstance(kind, type) else "a number from 0"
        wanted = wanted.replace("0", "1") if key in _FROM_1 else wanted
        raise ValueError(f"run.json: {key} is {quoted(value)}, but should be {wanted}")


# The keys of a scenario that the package reads beside its text: a table as a mapping, a list of one kind as a list.
_TIME = re.compile(r"\s*[0-9.]+\s*[a-zµ]+\s*")
_SHAPE: dict[str, Any] = {
    "name": str,
    "fabric": {"torus": {"dims": [int]}, "mesh": {"dims": [int]}},
    "traffic": [{"name": str, "arrivals": {"*": {"load": (int, float)}}}],
    "failure": [
        {
            "at": _TIME, "until": _TIME, "switch": str, "link": [str], "rate": object, "loss": object,
            "bit_error_rate": object,
        }
    ],
    "measure": {
        "packets": {"flows": list, "classes": list, "hosts": list, "links": list},
        "ports": [str],
        "events": list,
    },
}  # fmt: skip


def _check_scenario(toml: str) -> None:
    try:
        read = tomllib.loads(toml)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError(f"scenario.toml: {_why(error)}") from None
    if not isinstance(read.get("fabric"), dict) or not isinstance(read.get("traffic", []), list):
        raise ValueError(
            "scenario.toml: is not the scenario of a run: it needs a [fabric], and traffic must be a list of tables"
        )
    check_shape("scenario.toml", "", read, _SHAPE)
    for number, failure in enumerate(read.get("failure", [])):
        if "at" not in failure:
            raise ValueError(f"scenario.toml: failure.{number}.at is missing")


def check_shape(file: str, key: str, value: Any, shape: Any) -> None:
    """Checks the values of a file by a shape: a table as a mapping by key, where other keys are free; a list of one
    kind as a list; a text by a pattern; anything else by its type. `ValueError` names the key.
    """
    words = {str: "text", list: "a list", int: "a whole number", bool: "true or false"}
    if isinstance(shape, dict):
        # Keys that may also be a word, such as arrivals = "all_at_once".
        if "*" in shape and isinstance(value, str):
            return
        wanted, right = "a table", isinstance(value, dict)
    elif isinstance(shape, list):
        wanted, right = "a list", isinstance(value, list)
    elif isinstance(shape, re.Pattern):
        wanted, right = 'a time, such as "1ms"', isinstance(value, str) and shape.fullmatch(value) is not None
    else:
        wanted = words.get(shape, "a number")
        right = isinstance(value, shape) and (shape in (bool, object) or not isinstance(value, bool))
    if not right:
        raise ValueError(f"{file}: {key.removeprefix('.')} is {quoted(value)}, but should be {wanted}")
    if isinstance(shape, dict):
        for name, inner in value.items():
            if name in shape or "*" in shape:
                check_shape(file, f"{key}.{name}", inner, shape.get(name, shape.get("*")))
    elif isinstance(shape, list):
        for number, inner in enumerate(value):
            check_shape(file, f"{key}.{number}", inner, shape[0])


# Tables that come with each other.
_TOGETHER = {"jobs": ("collectives", "ranks", "critical"), "guarantees": ("guaranteed_waits",)}
# Columns that name a node. It is empty where there is none.
_NODES = {
    "packets": ("node", "to_node", "source", "destination"), "events": ("node", "to_node", "source", "destination"),
    "queues": ("switch",), "aqs": ("switch",), "ranks": ("host_name",), "guarantees": ("from_node", "to_node"),
    "flows": ("source", "destination"), "arrivals": ("host_name",), "states": ("host_name",),
    "congestion": ("from_node", "to_node"), "ports": ("from_node", "to_node"),
}  # fmt: skip
_TIERS = ("from_host", "up", "down", "to_host")
_WORDS = {
    ("links", "tier"): _TIERS,
    ("utilisation", "tier"): _TIERS,
    ("guarantees", "tier"): _TIERS,
    ("critical", "part"): tuple(SPEC["critical"]),
    ("ranks", "what"): ("compute", "collective"),
}
"""The words of columns that have no others."""


def check_tables(tables: Tables, info: Mapping[str, Any]) -> None:
    """Checks that the tables of a result are there, that they have their columns, and what they say of each other;
    `ValueError` names the first file and column that are wrong.
    """
    level = str(info.get("level", "packet"))
    needed = ["flows", "links", *(["counters"] if level == "packet" else [])]
    needed += [name for first, others in _TOGETHER.items() if first in tables for name in others]
    for name in needed:
        if name not in tables:
            raise ValueError(f"{name}.parquet is missing")
    for name, table in tables.items():
        _check_columns(name, table, columns_of(name, level))
    if "guaranteed_waits" in tables and not len(tables["guaranteed_waits"]):
        raise ValueError("guaranteed_waits.parquet has no rows, but has one for each quantile")
    nodes = _names_in(tables["links"], "from_node", "to_node") | {""}
    numbers = np.arange(len(tables["links"]), dtype=np.uint32)
    if not np.array_equal(tables["links"]["link"].to_numpy(), numbers):
        raise ValueError("links.parquet: the column link is not the number of the row, from 0")
    flows = tables["flows"]["flow"].to_numpy()
    if len(np.unique(flows)) < len(flows):
        raise ValueError("flows.parquet: the column flow has a number twice, but each flow has a row")
    # Of the messages of jobs some may have no row: `measure.rows_max`.
    without_row = range(len(flows), info["flows"])
    hosts, jobs = info["hosts"], _names_in(tables["jobs"], "job") if "jobs" in tables else set()
    for name, table in tables.items():
        known = columns_of(name, level)
        for column, kind in known.items():
            values = table[column]
            if column in ("link", "root_link"):
                _check_each(
                    name, column, values, lambda found: found < len(numbers), f"links are 0 to {len(numbers) - 1:,}"
                )
            elif column == "flow" and name != "flows":
                _check_each(
                    name,
                    column,
                    values,
                    lambda found: np.isin(found, flows) | ((found >= without_row.start) & (found < without_row.stop)),
                    "no such flow is in flows.parquet",
                )
            elif column in ("src", "dst", "host") and kind == "uint32":
                _check_each(name, column, values, lambda found: found < hosts, f"hosts are 0 to {hosts - 1:,}")
            elif column in _NODES.get(name, ()):
                _check_names_in(name, column, table, nodes, "no such node is in links.parquet")
            elif column == "job" and name != "jobs":
                _check_names_in(name, column, table, jobs, "no such job is in jobs.parquet")
            elif (name, column) in _WORDS:
                words = _WORDS[name, column]
                _check_names_in(name, column, table, set(words), f"it is one of {', '.join(words)}")


def _check_columns(name: str, table: pa.Table, columns: Mapping[str, str]) -> None:
    for column, kind in columns.items():
        if column not in table.column_names:
            raise ValueError(f"{name}.parquet has no column {column}: it is damaged, or of another version of Clearway")
        try:
            _check_column(table[column], kind)
        except ValueError as error:
            raise ValueError(f"{name}.parquet: the column {column} {error}") from None
    for column in table.column_names:
        if column not in columns and CONTROL.search(column):
            raise ValueError(f"{name}.parquet: {quoted(column)} is no name of a column")


def _check_each(table: str, column: str, values: pa.ChunkedArray, right: Callable[[Any], Any], what: str) -> None:
    known = values.drop_null().to_numpy()
    wrong = known[~right(known)]
    if len(wrong):
        raise ValueError(f"{table}.parquet: the column {column} has {wrong[0]:,}, but {what}")


def _check_names_in(table: str, column: str, rows: pa.Table, known: set[str], what: str) -> None:
    wrong = sorted(_names_in(rows, column) - known)
    if wrong:
        raise ValueError(f"{table}.parquet: the column {column} has {quoted(wrong[0])}, but {what}")


def _names_in(table: pa.Table, *columns: str) -> set[str]:
    """The names that columns have in some row."""
    return {name for column in columns for name in table[column].unique().to_pylist()}
