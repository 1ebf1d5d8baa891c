"""Hostile inputs, each made by a rule from a seed: scenarios, sweeps, traces, topologies, command lines, folders of
results.

As a program it tries them one after the other within one process, from a number on, and says of each how it ended: an
exit status that the command knows, or what came through. The process that starts it sees a death, a hang and a lack of
memory from outside.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

MEMORY_BYTES = 6 << 30
SECONDS = 10

# Those of the fuzz targets, which try readers by themselves.
SEEDS = Path("fuzz/seeds").resolve()


def _seeds(target: str) -> list[str]:
    return [path.read_text() for path in sorted((SEEDS / target).iterdir()) if not path.name.startswith("refused")]


TINY = Path("examples/tiny.toml").read_text()
SCENARIOS = [TINY, *_seeds("scenario")]
SWEEP = (
    'scenario = "tiny.toml"\n[set]\nseed = 2\n[vary]\nfabric.star.hosts = { from = 2, to = 4 }\n'
    'level = ["packet", "flow"]\n[[skip]]\nlevel = "flow"\n'
)
NUMBERS = [
    "0", "-1", "1", "2", "1e308", "-1e308", "nan", "inf", "-inf", "255", "256", "65535", "65536", "4294967295",
    "4294967296", "9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616",
    "1e-300", "0.1", "1_000", "0x10", "1e9", "1000000000", "true", '""', "[]", "{}", "[[[[]]]]", '"many"', "1979-05-27",
    '"1e400s"', '"0bps"', '"-5us"', '"99999999999999999999s"', '"1EB"', '"1.5B"', '"500000s"', '"\\u0000"', '"[red]"',
]  # fmt: skip
TRACES = {kind: _seeds(f"trace_{kind}") for kind in ("csv", "hpcc", "htsim")}
TOPOLOGIES = {kind: _seeds(f"topology_{kind}") for kind in ("graph", "hpcc", "htsim")}
ODD = [
    "/dev/zero",
    "/dev/urandom",
    "/etc/shadow",
    "/etc/passwd",
    "/",
    ".",
    "/proc/self/mem",
    "/dev/full",
    "no/such",
    "pipe",
    "",
    "a\\u0000b",
    "/proc/self/environ",
]
OPTIONS = [
    ["--seed"], ["--load"], ["--threads"], ["--level"], ["--flow-control"], ["--set"], ["--out"], ["--transport"],
    ["--duration"], ["--low"], ["--high"], ["--resolution"], ["--keeps-up"], ["--slowdown"], ["--traffic"], ["--store"],
    ["--workers"], ["--fabric"], ["--json"], ["--plan"], ["--all-complete"], ["--continue"], ["--names"], ["--version"],
    ["--"], ["-x"], ["--workload"], ["--sustained"],
]  # fmt: skip
VALUES = [
    "0", "-1", "1e309", "nan", "inf", "18446744073709551616", "", "x", "[", "a=b", "seed=1", "name=[red]",
    "fabric.star.hosts=1e9", "..=..", "=", "seed", "traffic.0.flows=99999999999999999999", "\udcff", "/dev/null",
    "/proc/x", "tiny.toml", "pfc", "udp", "\x00", "a" * 5000, "traffic.99.flows=1", "{}={}", "0.0000001",
    "measure.end=1ps", "measure.interval=1ps", "transport={udp={},dctcp={}}", "../../../..", "1us", "1e-9us",
]  # fmt: skip
COMMANDS = [
    "run",
    "compare",
    "sustain",
    "sweep",
    "live",
    "check",
    "report",
    "schemes",
    "fabrics",
    "workloads",
    "schema",
    "init",
    "nonsense",
    "",
    "--help",
]

Case = tuple[str, list[str]]
"""Its name and command line; its files are there when it is made."""


def cases(place: Path, count: int) -> Iterator[Callable[[], Case]]:
    """So many, of all kinds in turn; each makes its files in `place` when it is called."""
    kinds = [_scenario, _command, _trace, _result, _scenario, _sweep, _topology, _scenario, _tampered]
    for number in range(count):
        kind = kinds[number % len(kinds)]
        yield partial(_case, number, kind, place)


def _case(number: int, kind: Callable[[random.Random, Path], list[str]], place: Path) -> Case:
    return f"{number} {kind.__name__[1:]}", kind(random.Random(number), place)


def _mutated(chance: random.Random, text: str) -> str:
    """A text with one to three things wrong."""
    for _ in range(chance.randint(1, 3)):
        lines = text.split("\n")
        at = chance.randrange(len(lines))
        how = chance.randrange(9)
        if how == 0:
            kept = "".join(part for part in lines[at] if chance.random() > 0.1)
            lines[at] = kept[: chance.randint(0, len(lines[at]))]
        elif how == 1:
            del lines[at]
        elif how == 2:
            lines.insert(chance.randrange(len(lines) + 1), lines[at])
        elif how in (3, 4, 5) and "=" in lines[at]:
            lines[at] = lines[at].partition("=")[0] + "= " + chance.choice(NUMBERS)
        elif how == 6:
            words = [place for place, sign in enumerate(lines[at]) if sign.isalnum()]
            if words:
                spot = chance.choice(words)
                lines[at] = (
                    lines[at][:spot]
                    + chance.choice(["_", "9", '"', "[", "\t", "é", "\u202e", "\x00", "}"])
                    + lines[at][spot + 1 :]
                )
        elif how == 7:
            deep = chance.choice([10, 1_000, 100_000])
            lines.insert(at, f"{chance.choice(['deep', 'name', 'seed'])} = {'[' * deep}{']' * deep}")
        else:
            lines.insert(
                at,
                chance.choice(
                    [
                        "[fabric]",
                        "[[fabric]]",
                        "[traffic]",
                        "[[failure]]",
                        "[[entity]]",
                        "[sharing]",
                        "name = 3",
                        "[measure]",
                        "x" * 100_000,
                    ]
                ),
            )
        text = "\n".join(lines)
    return text


def _scenario(chance: random.Random, place: Path) -> list[str]:
    text = _mutated(chance, chance.choice(SCENARIOS))
    (place / "mutated.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    if chance.random() < 0.5:
        return ["check", "mutated.toml"]
    return [
        "run",
        "mutated.toml",
        "--threads",
        "1",
        "--set",
        "measure.end=10us",
        "--level",
        chance.choice(["packet", "packet", "flow"]),
        "--out",
        "out",
    ]


def _sweep(chance: random.Random, place: Path) -> list[str]:
    (place / "tiny.toml").write_text(SCENARIOS[0])
    text = _mutated(chance, SWEEP)
    if chance.random() < 0.3:
        wild = chance.choice(["os.system", "subprocess.Popen", "distributed.LocalCluster", "x" * 1000, "..", ""])
        text += (
            f'[cluster]\nlauncher = "{wild}"\n'
            f"arguments = {{ {chance.choice(['args', 'python', 'queue', 'n_workers'])} = {chance.choice(NUMBERS)} }}\n"
        )
    (place / "sweep.toml").write_text(text, errors="surrogateescape")
    return ["sweep", "sweep.toml", "--plan", "--out", "swept"]


def _trace(chance: random.Random, place: Path) -> list[str]:
    kind = chance.choice([*TRACES, "parquet"])
    path = place / "trace"
    path.unlink(missing_ok=True)
    pipe = place / "pipe"
    if not pipe.exists():
        os.mkfifo(pipe)
    where = "trace" if chance.random() < 0.8 else chance.choice(ODD)
    if kind == "parquet":
        content = bytearray((place / "sound" / "flows.parquet").read_bytes())
        for _ in range(chance.randint(1, 8)):
            content[chance.randrange(len(content))] = chance.randrange(256)
        path.write_bytes(content[: chance.choice([len(content), chance.randrange(len(content))])])
    else:
        rows = chance.choice(TRACES[kind]).split("\n")
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(rows))
            cells = rows[at].replace(",", " , ").split(" ")
            cells[chance.randrange(len(cells))] = chance.choice(NUMBERS)
            rows[at] = " ".join(cells).replace(" , ", ",")
        path.write_text("\n".join(rows))
    text = (
        'transport = "udp"\n[measure]\nend = "10us"\n[fabric.star]\nhosts = 4\n[[traffic]]\n'
        f'trace = {{ {kind} = {{ path = "{where}" }} }}\n'
    )
    (place / "traced.toml").write_text(text)
    return (
        ["check", "traced.toml"] if chance.random() < 0.5 else ["run", "traced.toml", "--threads", "1", "--out", "out"]
    )


def _topology(chance: random.Random, place: Path) -> list[str]:
    kind = chance.choice(list(TOPOLOGIES))
    rows = chance.choice(TOPOLOGIES[kind]).split("\n")
    for _ in range(chance.randint(1, 2)):
        at = chance.randrange(len(rows))
        cells = rows[at].split(" ")
        cells[chance.randrange(len(cells))] = chance.choice(NUMBERS).strip('"')
        rows[at] = " ".join(cells)
    (place / "topology").write_text("\n".join(rows))
    where = "topology" if chance.random() < 0.7 else chance.choice(ODD)
    text = (
        f'transport = "udp"\n[fabric.file]\npath = "{where}"\nformat = "{kind}"\n[[traffic]]\n'
        f'sizes = {{ constant = "1KB" }}\narrivals = "all_at_once"\n'
    )
    (place / "wired.toml").write_text(text)
    return ["check", "wired.toml"]


def _result(chance: random.Random, place: Path) -> list[str]:
    folder = place / "broken"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(place / "sound", folder)
    spoiled = set()
    for _ in range(chance.randint(1, 2)):
        path = chance.choice(sorted(folder.iterdir()))
        if not path.is_file() or path in spoiled:
            continue
        spoiled.add(path)
        how = chance.randrange(6)
        content = bytearray(path.read_bytes())
        if how == 0:
            path.write_bytes(content[: chance.randrange(len(content) + 1)])
        elif how == 1 and content:
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
            path.write_bytes(content)
        elif how == 2:
            path.unlink()
        elif how == 3:
            path.unlink()
            chance.choice(
                [path.mkdir, lambda path=path: os.mkfifo(path), lambda path=path: path.symlink_to("/dev/zero")]
            )()
        elif path.name == "run.json" and content:
            info = json.loads(content)
            info[chance.choice(list(info))] = chance.choice(
                [None, -1, 1e308, [], {}, "x", True, 10**30, [[]], [{}], float("nan")]
            )
            path.write_text(json.dumps(info))
        else:
            path.write_bytes(chance.randbytes(chance.choice([0, 1, 1000])))
    return ["report", "broken", "--out", "page.html"]


def _tampered(chance: random.Random, place: Path) -> list[str]:
    """A result whose tables say what no run says, under checksums that are right."""
    folder = place / "tampered"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(place / "sound", folder)
    info = json.loads((folder / "run.json").read_text())
    for _ in range(chance.randint(1, 2)):
        path = chance.choice(sorted(folder.glob("*.parquet")))
        table = pq.read_table(path)
        column = chance.randrange(table.num_columns)
        name, kind = table.column_names[column], table.schema.field(column).type
        how = chance.randrange(5)
        if how == 0:
            table = table.slice(0, chance.choice([0, 1, table.num_rows // 2]))
        elif how == 1:
            table = table.drop_columns([name])
        elif how == 2:
            table = table.take(pa.array([chance.randrange(table.num_rows) for _ in range(table.num_rows)], pa.int64()))
        else:
            odd = [None, 0, 1, 2**32 - 1] if how == 3 else [None, 2**63, 2**64 - 1, 10**15]
            if pa.types.is_dictionary(kind):
                odd = ["", "{0.__class__}", "[red]", "<script>", "\u202e", "a" * 10_000]
            values = [one if chance.random() < 0.5 else chance.choice(odd) for one in table[name].to_pylist()]
            with contextlib.suppress(pa.ArrowException, OverflowError):
                table = table.set_column(column, table.schema.field(column), pa.array(values, kind))
        pq.write_table(table, path)
        info["checksums"][path.name] = hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()
    (folder / "run.json").write_text(json.dumps(info))
    return chance.choice(
        [
            ["report", "tampered", "--out", "page.html"],
            ["explain", "tampered"],
            ["explain", "tampered", "--flow", "1"],
            ["trace", "tampered", "out.pftrace"],
            ["view", "tampered", "--no-open"],
        ]
    )


def _command(chance: random.Random, place: Path) -> list[str]:
    for path in (place / "scenario.toml", place / "tiny.toml"):
        path.unlink(missing_ok=True)
    (place / "tiny.toml").write_text(SCENARIOS[1])
    (place / "sweep.toml").write_text(SWEEP)
    words = [chance.choice(COMMANDS)]
    if words[0] == "live":
        # A real clock takes its time.
        words[0] = "run"
    if chance.random() < 0.8:
        words.append("sweep.toml" if words[0] == "sweep" else chance.choice(["tiny.toml", "tiny.toml", *ODD]))
    for _ in range(chance.randint(0, 3)):
        words += chance.choice(OPTIONS)
        if chance.random() < 0.8:
            words.append(chance.choice(VALUES))
    if words[0] == "sweep":
        words.append("--plan")
    return words


def main(count: int, first: int) -> None:
    """Tries cases in the current folder, from one on; a line before and a line after each."""
    from called import call

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    place = Path.cwd()
    for number, case in enumerate(cases(place, count)):
        if number < first:
            continue
        name, words = case()
        print(json.dumps({"begun": number, "name": name, "words": words}), flush=True)
        began = time.process_time()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            done = call(*words)
            said = {"code": done.code, "err": done.err[-300:]}
        except BaseException as error:
            said = {"code": None, "err": "".join(traceback.format_exception(error))[-1500:]}
        print(json.dumps({"ended": number, **said, "seconds": round(time.process_time() - began, 2)}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
