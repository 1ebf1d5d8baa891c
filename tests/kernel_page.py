"""Measures Clearway's TCP beside that of this machine's kernel, and writes docs/kernel-measured.md.

`python tests/kernel_page.py`, as root, measures all cases, two at a time; with names such as `small-buffer` or
`small-buffer/bbr` those alone. `page` measures nothing and writes the page. The measurements are in
docs/kernel-bench.json; the region of the page between `<!-- kernel: begin -->` and `<!-- kernel: end -->` is written
from that and never by hand.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RECORD, PAGE = ROOT / "docs" / "kernel-bench.json", ROOT / "docs" / "kernel-measured.md"
REGION = re.compile(r"(<!-- kernel: begin -->\n).*?(<!-- kernel: end -->\n)", re.DOTALL)
# Chosen before anything was measured: of the mean completion time of each class of sizes.
ALLOWED = 0.10
AT_ONCE = 2
# A run in which the machine was late is made again.
TRIES = 3

# Settings of the kernel that the presets of papers don't have.
STACK = (
    'handshake = true, delayed_ack = { packets = 2, timeout = "40ms" }, rto_min = "200ms", '
    'rto_variance_min = "200ms", rto_max = "120s", rack = true, tail_loss_probe = true'
)
TIMES = 'control = { rtprop_filter_len = "10s", probe_rtt_duration = "200ms", pacing_margin = 0.01 }'
TRANSPORTS = {
    "reno": f"newreno = {{ {STACK}, prr = true }}",
    "cubic": "linux = { handshake = true }",
    "bbr": f"bbr = {{ {STACK}, {TIMES} }}",
    "dctcp": f"dctcp = {{ {STACK}, prr = true }}",
}
BASE = """
name = "{name}"
transport = {{ {transport} }}
host = {{ header = "52B", jitter = "50us", start_jitter = "{later}" }}
measure = {{ drain = "60s", interval = "0s" }}
switch = {{ buffer.per_port.bytes = "{buffer}"{marking} }}
"""
STAR = 'fabric.star = {{ hosts = {hosts}, rate = "20Mbps", propagation = "5ms", switch_delay = "1us" }}\n'
TRACE = '[[traffic]]\ntrace.csv.path = "flows.csv"\n'
MIX = """
[[traffic]]
sizes = "websearch_hpcc"
arrivals.poisson = { load = 0.6, of = "narrowest_link" }
senders = "0-3"
receivers = "4"
flows = 40
"""
# Windows wait in the switch, as the link to the last host is the slowest.
LAST = """switch s 1us
host {hosts}
{links}link h{last} s {rate} 5ms
"""
LOSSY, DCTCP = ("reno", "cubic", "bbr"), ("dctcp",)


@dataclass(frozen=True)
class Case:
    """Flows on a fabric."""

    title: str
    flows: tuple[tuple[int, int, int, int], ...]
    """From, to, bytes, start in milliseconds; none for the mix."""
    bins: tuple[int, ...]
    hosts: int
    rate: str = "20Mbps"
    """Of the link to the last host; the others have 100 Mbps."""
    controls: tuple[str, ...] = LOSSY
    buffer: str = "200KB"
    marking: str = ""
    seeds: int = 3
    later: str = "100ms"
    """By how much flows start later at most, differently with each seed: some round trips, so that no result is one of
    phases."""


TWO = ((0, 2, 6_000_000, 0), (1, 2, 2_500_000, 700))
EIGHT = tuple((n, 8, 600_000 + 50_000 * n, (0, 130, 170, 410, 430, 790, 1100, 1130)[n]) for n in range(8))
FROM_30_KB = ', marking.step.threshold = "30KB"'
CASES = {
    "lone": Case(
        "A flow alone: 30 KB, 300 KB and 3 MB, one after another",
        ((0, 1, 30_000, 0), (0, 1, 300_000, 500), (0, 1, 3_000_000, 1500)),
        (100_000, 1_000_000),
        hosts=2,
        seeds=1,
        later="0s",
    ),
    "two": Case("Two flows into one port: 6 MB, and 2.5 MB 0.7 s later", TWO, (3_000_000,), hosts=3),
    "eight": Case("Eight flows into one port, 0.6 to 0.95 MB, within 1.1 s", EIGHT, (800_000,), hosts=9),
    "mix": Case("Web search into one port, load 0.6", (), (100_000, 1_000_000), hosts=5, seeds=1, later="0s"),
    "last": Case(
        "A last link of 5 Mbps: 1 MB, and 0.4 MB 0.3 s later",
        ((0, 2, 1_000_000, 0), (1, 2, 400_000, 300)),
        (700_000,),
        hosts=3,
        rate="5Mbps",
    ),
    "equal": Case("Links of one rate, so that windows wait in hosts", TWO, (3_000_000,), hosts=3, rate="equal"),
    "small-buffer": Case(
        "Losses: two flows over a buffer of 20 KB",
        TWO,
        (3_000_000,),
        hosts=3,
        buffer="20KB",
    ),
    "marks": Case("Two flows, marks from 30 KB on", TWO, (3_000_000,), hosts=3, controls=DCTCP, marking=FROM_30_KB),
    "marks-eight": Case(
        "Eight flows, marks from 30 KB on",
        EIGHT,
        (800_000,),
        hosts=9,
        controls=DCTCP,
        marking=FROM_30_KB,
    ),
}


def scenario(case: str, control: str, folder: Path) -> Any:
    """A case's scenario; the files that it names are in the folder."""
    import clearway as cw

    of = CASES[case]
    text = BASE.format(name=case, transport=TRANSPORTS[control], buffer=of.buffer, marking=of.marking, later=of.later)
    if of.rate == "equal":
        text += STAR.format(hosts=of.hosts)
    else:
        names = [f"h{host}" for host in range(of.hosts)]
        links = "".join(f"link {name} s 100Mbps 5ms\n" for name in names[:-1])
        (folder / "fabric.txt").write_text(
            LAST.format(hosts=" ".join(names), links=links, last=of.hosts - 1, rate=of.rate)
        )
        text += 'fabric.file.path = "fabric.txt"\n'
    if of.flows:
        rows = "".join(",".join(map(str, flow)) + "\n" for flow in of.flows)
        (folder / "flows.csv").write_text("src,dst,size_bytes,start_ms\n" + rows)
    return cw.Scenario.from_toml(text + (TRACE if of.flows else MIX), name=case, folder=folder)


@contextlib.contextmanager
def has(control: str) -> Iterator[str]:
    """The kernel's congestion control; DCTCP by a program where it was built without."""
    from clearway.peers import kernel

    if control != "dctcp" or kernel.control_of(["dctcp"]):
        yield ""
        return
    sys.path.insert(0, str(ROOT / "tests" / "kernel"))
    from world import dctcp

    with dctcp():
        yield "tests/kernel/dctcp.bpf.c"


def measured(case: str, control: str) -> dict[str, Any]:
    """A case in both: rows by size, and counts."""
    of = CASES[case]
    with tempfile.TemporaryDirectory() as folder:
        asked = scenario(case, control, Path(folder))
        try:
            found = over(asked, of)
        except ValueError as problem:
            return {"late": str(problem)}
        rows = [row(str(size), group) for size, group in found.flows().groupby("size", observed=True)]
        traced = None
        if any(abs(off(one)) > ALLOWED for one in rows):
            traced = trace(asked.with_({"seed": 1}), of, Path(folder), PICTURE.format(case=case, control=control))
    counts = found.ports().join(found.senders()).to_dict("index")
    facts = [pair.theirs.facts for pair in found.pairs]
    said: dict[str, int] = {}
    for pair in found.pairs:
        for name in COUNTERS & pair.theirs.counters.keys():
            said[name] = said.get(name, 0) + pair.theirs.counters[name]
    return {
        "rows": rows,
        "here": counts["clearway"],
        "there": counts["kernel"],
        "counters": dict(sorted(said.items())),
        "unfinished": list(found.unfinished()),
        "late_us_p99": max(float(fact["late_us_p99"]) for fact in facts),
        "priority": facts[0]["priority"],
        "version": found.version,
        "trace": traced,
    }


def over(asked: Any, of: Case) -> Any:
    """A second opinion over a case's seeds, each of which is tried again where the machine was late."""
    import clearway as cw

    found = []
    for seed in range(1, of.seeds + 1):
        for attempt in range(TRIES):
            try:
                found.append(cw.against(asked, "kernel", seeds=[seed], bins=of.bins))
                break
            except ValueError as problem:
                if "could not follow" not in str(problem) or attempt == TRIES - 1:
                    raise
    return replace(found[0], pairs=[pair for one in found for pair in one.pairs])


def row(size: str, group: Any) -> dict[str, Any]:
    """The mean completion times of a class of sizes, and their range over seeds."""
    each = group.groupby("seed")[["ours_ps", "theirs_ps"]].mean() / 1e9
    found: dict[str, Any] = {"size": size, "count": len(group)}
    for name, which in (("here", "ours_ps"), ("there", "theirs_ps")):
        found |= {name: group[which].mean() / 1e9, f"{name}_range": [each[which].min(), each[which].max()]}
    return found


def off(row: Mapping[str, Any]) -> float:
    """By how much our mean is off the kernel's."""
    return float(row["here"]) / float(row["there"]) - 1


def trace(asked: Any, of: Case, folder: Path, picture: str) -> str | None:
    """A picture of the packets of both on the last link, from captures of one run; its name."""
    import clearway as cw
    from kernel_trace import draw

    link = f"switch0-host{of.hosts - 1}" if of.rate == "equal" else f"s-h{of.hosts - 1}"
    try:
        cw.against(asked, "kernel", bins=of.bins, captures={link: folder / "trace"})
    except ValueError:
        return None
    draw(folder / "trace.here.pcapng", folder / "trace.there.pcapng", ROOT / "docs" / picture)
    return picture


PICTURE = "kernel-trace-{case}-{control}.png"
# Of nstat's numbers, those that explain a difference.
COUNTERS = {
    "TcpExtTCPFastRetrans",
    "TcpExtTCPSlowStartRetrans",
    "TcpExtTCPTimeouts",
    "TcpExtTCPLossProbes",
    "TcpExtTCPLostRetransmit",
    "TcpExtTCPSackRecovery",
    "TcpExtTCPDSACKRecv",
    "TcpExtTCPHystartTrainDetect",
    "TcpExtTCPHystartDelayDetect",
    "TcpExtTCPFullUndo",
    "TcpExtTCPPartialUndo",
    "TcpExtTCPDSACKUndo",
    "TcpExtDelayedACKs",
    "TcpExtTCPDeliveredCE",
}
# Why a difference stays, by case and control, as traces and the kernel's source show it.
BBR = (
    "A likely reason, not shown by itself: Linux's BBR allows for bursts of its segmentation offload "
    "(`bbr_quantization_budget`), for acknowledgements that come together (`bbr_ack_aggregation_cwnd`) and for "
    "policers (`bbr_lt_bw_sampling`); version 1 here follows the draft, which has none of that. Both begin alike, and "
    "then flows come to other shares."
)
MARKS = (
    "The kernel shrinks its window over a round trip (`tcp_enter_cwr`, then PRR), and here it falls at once. So the "
    "kernel's queue stays above the threshold for whole round trips of marks, its share of marks is greater and its "
    "next cuts are deeper; its first flow also goes further beyond the threshold in slow start."
)
SMALL = (
    "About as many packets are lost and as many recoveries begin, but of the kernel's losses more are the later "
    "flow's. Which flow finds the room of 13 packets taken depends on how the bursts of two flows meet; why it is the "
    "later one more often is not explained."
)
CUBIC = (
    "Windows grow alike after a loss, by 0.53 segments in a round trip. The reason for `reno` is one here, too; "
    "whether there is another is not explained."
)
WHY = {
    **dict.fromkeys(("two/bbr", "eight/bbr", "last/bbr", "equal/bbr", "mix/bbr", "small-buffer/bbr"), BBR),
    **dict.fromkeys(("marks/dctcp", "marks-eight/dctcp"), MARKS),
    "small-buffer/reno": SMALL,
    "small-buffer/cubic": CUBIC,
}


def filled(page: str, record: Mapping[str, Any]) -> str:
    """The page with its region as the record has it; ValueError if it has none."""
    if len(REGION.findall(page)) != 1:
        raise ValueError("the page needs one region, from <!-- kernel: begin --> to <!-- kernel: end -->")
    return REGION.sub(lambda marks: marks[1] + render(record) + marks[2], page)


def render(record: Mapping[str, Any]) -> str:
    """The region's text."""
    cases = record.get("cases")
    if not cases:
        return "Not yet measured: `make against-kernel`.\n"
    names = [f"{case}/{control}" for case, of in CASES.items() for control in of.controls]
    names = [name for name in names if name in cases]
    rows = [(name, one) for name in names for one in cases[name].get("rows", ())]
    outside = [(name, one) for name, one in rows if abs(off(one)) > ALLOWED]
    errors = sorted(abs(off(one)) for _, one in rows)
    said = (
        f"**{len(rows) - len(outside)} of {len(rows)} means are within {ALLOWED:.0%} of the kernel's; half are within "
        f"{errors[len(errors) // 2]:.1%}.** {record['where']}"
    )
    late = [f"`{name}`: not compared, {cases[name]['late']}." for name in names if "late" in cases[name]]
    parts = [_wrapped(said), _times(cases, names), *map(_wrapped, late)]
    parts += ["**Packets**, means over seeds:", _packets(cases, names)]
    for name in dict.fromkeys(name for name, _ in outside):
        why = WHY.get(name, "Not explained yet.")
        parts.append(_wrapped(f"**Outside: {_title(name)}.** {why} {_counted(cases[name])}"))
        if picture := cases[name].get("trace"):
            parts.append(f"![The last link's packets in both, by time]({picture})")
    return "\n\n".join(parts) + "\n"


def _title(name: str) -> str:
    case, _, control = name.partition("/")
    return f"{CASES[case].title}, {control}"


def _counted(of: Mapping[str, Any]) -> str:
    named = ", ".join(f"{name.removeprefix('TcpExt')} {value}" for name, value in of["counters"].items())
    return f"The kernel counted: {named}." if named else ""


def _times(cases: Mapping[str, Any], names: Sequence[str]) -> str:
    lines = []
    for name in names:
        for one in cases[name].get("rows", ()):
            verdict = "holds" if abs(off(one)) <= ALLOWED else "**outside**"
            lines.append(
                [
                    _title(name),
                    _size(one["size"]),
                    str(one["count"]),
                    *(f"{one[key]:,.0f} ms{_range(one[f'{key}_range'])}" for key in ("there", "here")),
                    f"{off(one):+.1%}",
                    verdict,
                ]
            )
    return _table(["case", "sizes", "flows", "kernel, mean (seeds)", "here, mean (seeds)", "off", "10% allowed"], lines)


def _packets(cases: Mapping[str, Any], names: Sequence[str]) -> str:
    keys = ("sent again", "dropped packets", "marked packets", "longest queue, bytes")
    lines = []
    for name in names:
        if "here" in cases[name]:
            both = [(cases[name]["there"][key], cases[name]["here"][key]) for key in keys]
            lines.append([_title(name), *(f"{there:,.0f}, {here:,.0f}" for there, here in both)])
    heads = ("sent again", "dropped", "marked", "longest queue, B")
    return _table(["case", *(f"{head}: kernel, here" for head in heads)], lines)


def _size(interval: str) -> str:
    """Such as "up to 3 MB" for "(0.0, 3000000.0]"."""
    low, high = (float(word) for word in interval.strip("([])").split(", "))
    from_, to = (f"{bytes_ / 1e6:g} MB" for bytes_ in (low, high))
    if high == float("inf"):
        return f"over {from_}"
    return f"up to {to}" if low == 0 else f"{from_} to {to}"


def _range(of: Sequence[float]) -> str:
    return "" if of[1] - of[0] < 0.5 else f" ({of[0]:,.0f} to {of[1]:,.0f})"


def _table(heads: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [heads, ["---"] * len(heads), *rows])


def _wrapped(text: str) -> str:
    return textwrap.fill(text.strip(), 120, break_long_words=False, break_on_hyphens=False)


def where(cases: Mapping[str, Any], load: float) -> str:
    """Where the numbers come from."""
    words = [sys.executable, "-m", "clearway", "--version"]
    version = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    commit = re.sub(r".*\((\w+)\).*", r"\1", version.strip())
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    done = [of for of in cases.values() if "rows" in of]
    kernels = ", ".join(sorted({of["version"] for of in done}))
    by = sorted({of["by"] for of in done if of.get("by")})
    own = f" It has no DCTCP of its own: `{by[0]}` took its place, a program after RFC 8257." if by else ""
    late = max((of["late_us_p99"] for of in done), default=0.0)
    return (
        f"{kernels}, measured at commit {commit} on {time.strftime('%Y-%m-%d')}, on {os.cpu_count()} cores of "
        f"{found[1] if found else platform.processor()}, while {load:.1f} other programs wanted them; 99 of 100 "
        f"packets came out of links at most {late:,.0f} us late (`make against-kernel`).{own}"
    )


def one(case: str, control: str) -> dict[str, Any]:
    """A case, measured in a process of its own."""
    words = [sys.executable, __file__, "--one", case, control]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{case}/{control}: {done.stderr.strip()[-2000:]}")
    read: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    shown = read.get("late") or ", ".join(f"{_size(of['size'])} {off(of):+.1%}" for of in read["rows"])
    print(f"{case}/{control}: {shown}", flush=True)
    return read


def main(words: list[str]) -> int:
    """Measures cases, and writes the page."""
    if words[:1] == ["--one"]:
        print(json.dumps(measured(*words[1:])))
        return 0
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {"cases": {}}
    if words != ["page"]:
        from clearway.peers import kernel

        if reason := kernel.missing(["cubic"]):
            sys.exit(f"the kernel can't be asked here: {reason}")
        every = [(case, control) for case, of in CASES.items() for control in of.controls]
        asked = [pair for pair in every if not words or pair[0] in words or "/".join(pair) in words]
        load = os.getloadavg()[0]
        with has("dctcp") as by, ThreadPoolExecutor(AT_ONCE) as pool:
            # The longest first.
            asked.sort(key=lambda pair: pair[0] != "mix")
            for (case, control), got in zip(asked, pool.map(lambda pair: one(*pair), asked), strict=True):
                record["cases"][f"{case}/{control}"] = got | ({"by": by} if control == "dctcp" else {})
                RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        record["where"] = where(record["cases"], load)
        RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), record), encoding="utf-8")
    print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
