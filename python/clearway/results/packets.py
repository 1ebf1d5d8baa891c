"""Facts from the packets of a result, recorded one by one (`measure.packets`): queues, and whose packets were there."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from clearway.results.result import Result

ADVICE = (
    'record them: `clearway run RESULT/scenario.toml --set "measure.packets={}" --out OUT`, RESULT being its folder; '
    'or fewer: `--set \'measure.packets={links=["leaf0-host0"],from="1ms",until="2ms"}\'`'
)
# The most messages of a flow that are written out.
MESSAGES = 8
# The most pauses at a node that are written out.
PAUSES = 6


def packets(result: Result) -> pd.DataFrame:
    """The table `packets`; columns that a row may lack are floats with NaN."""
    if "packets" not in result.tables:
        raise ValueError(f"{result.name!r} has no table packets: {ADVICE}")
    frame = result.packets.to_pandas()
    optional = ["link", "came_ps", "last_ps", "waiting_bytes", "flow", "offset_bytes"]
    return frame.astype(dict.fromkeys(optional, "float64") | {"time_ps": "int64"})


def is_whole(result: Result) -> bool:
    """Whether all packets of the links are there that were recorded, whichever flow they belong to."""
    return not any(asked(result).get(key) for key in ("flows", "classes", "hosts"))


def asked(result: Result) -> dict[str, Any]:
    """The scenario's `measure.packets`. Files that the scenario names may have gone by now."""
    packets: dict[str, Any] = tomllib.loads(result.scenario_toml).get("measure", {}).get("packets", {})
    return packets


def at_link(result: Result, link: str) -> pd.DataFrame:
    """The packets that took a link, in their order. `link` is its two nodes, such as "leaf0-host0"."""
    from clearway.results.ports import links_of

    frame = packets(result)
    return frame[frame["link"].isin(links_of(result, link))]


def queue(result: Result, link: str) -> pd.DataFrame:
    """The packets that waited for a link, at each change: columns `time_us`, `bytes`, `packets`."""
    mine = at_link(result, link)
    mine = mine[mine["time_ps"] > mine["came_ps"]]
    changes = pd.DataFrame(
        {
            "time_us": np.concatenate([mine["came_ps"], mine["time_ps"]]) / 1e6,
            "bytes": np.concatenate([mine["bytes"], -mine["bytes"].astype(int)]).astype(int),
            "packets": np.repeat([1, -1], len(mine)),
        }
    )
    changes = changes.groupby("time_us", as_index=False).sum()
    changes[["bytes", "packets"]] = changes[["bytes", "packets"]].cumsum()
    return changes


def progress(result: Result, flow: int) -> pd.DataFrame:
    """The bytes that a flow has sent, and those that have arrived, at each change: columns `time_us`, `sent_bytes`
    (payload that
    left its host, repetitions too), `arrived_bytes` (payload whose last bit left the last switch) and `between_bytes`,
    what was sent and neither arrived nor was lost.
    """
    frame = packets(result)
    mine = frame[(frame["flow"] == flow) & (frame["payload_bytes"] > 0)]
    if not len(mine):
        raise ValueError(f"{result.name!r} has no recorded packets of flow {flow}: {ADVICE}")
    on_link = mine[mine["link"].notna()]
    begins = on_link[on_link["node"].astype(str) == on_link["source"].astype(str)]
    ends = on_link[(on_link["to_node"].astype(str) == on_link["destination"].astype(str)) & ~on_link["trimmed"]]
    ended = mine[
        (mine["lost"] != "") | (mine["trimmed"] & (mine["to_node"].astype(str) == mine["destination"].astype(str)))
    ]
    kinds = [(begins, "time_ps", "sent_bytes", 1), (ends, "last_ps", "arrived_bytes", -1), (ended, "time_ps", "", -1)]
    parts = [
        pd.DataFrame(
            {
                "time_us": rows[column].astype(float) / 1e6,
                "sent_bytes": rows["payload_bytes"] if name == "sent_bytes" else 0,
                "arrived_bytes": rows["payload_bytes"] if name == "arrived_bytes" else 0,
                "between_bytes": sign * rows["payload_bytes"].astype("int64"),
            }
        )
        for rows, column, name, sign in kinds
    ]
    numbers = ["sent_bytes", "arrived_bytes", "between_bytes"]
    changes = pd.concat(parts).groupby("time_us", as_index=False).sum()
    changes[numbers] = changes[numbers].astype("int64").cumsum()
    return changes


def waiting(result: Result, at: float, link: str | None = None) -> pd.DataFrame:
    """The packets that waited for a link at a time in picoseconds, in the order in which they left; without `link`
    for the one for which the most bytes waited.
    """
    frame = packets(result) if link is None else at_link(result, link)
    there = frame[(frame["came_ps"] <= at) & (frame["time_ps"] > at)]
    if link is None and len(there):
        most = there.groupby("link")["bytes"].sum().idxmax()
        there = there[there["link"] == most]
    return there.sort_values("time_ps", kind="stable")


def said_at(result: Result, at: float, link: str | None) -> list[str]:
    """Which queue was the longest at a time, whose packets were in it, and what neighbours had said of it."""
    there = waiting(result, at, link)
    when = f"{at / 1e9:,.6g} ms"
    known = packets(result)["time_ps"]
    if not len(known) or not known.min() <= at <= known.max():
        between = f"from {known.min() / 1e9:,.6g} ms to {known.max() / 1e9:,.6g} ms" if len(known) else "not at all"
        return [f"At {when} no packets are recorded: they are {between}. {'; '.join(result.info.get('warnings', []))}"]
    if not len(there):
        return [f"At {when} nothing waited {f'for {link}' if link else 'at any port that was recorded'}."]
    first: Any = there.iloc[0]
    name = f"{first['node']}-{first['to_node']}"
    what = f"{int(there['bytes'].sum()):,} B waited for {name}, {counted(len(there))}"
    said = [
        f"At {when} {what}." if link else f"At {when} the longest queue that was recorded was this: {what}.",
        f"The first of them left {(first['time_ps'] - at) / 1e6:,.2f} µs later, the last "
        f"{(there['time_ps'].max() - at) / 1e6:,.2f} µs later.",
    ]
    said += [f"Of {words}." for words in whose(result, there)]
    held = pauses(result)
    held = held[(held["from_ps"] <= at) & (held["to_ps"] > at)]
    here, named = str(first["node"]), roots(result)
    told = [
        f"{by} told {node} to hold back packets {(at - begun) / 1e6:,.2f} µs before, and they were held: {named(says)}."
        for node, by, says, begun in zip(held["node"], held["by"], held["says"], held["from_ps"])
        if here in (node, by)
    ]
    said += told[:PAUSES]
    if len(told) > PAUSES:
        said.append(f"{len(told) - PAUSES:,} more such pauses were in force at {here}.")
    return said


def roots(result: Result) -> Callable[[str], str]:
    """Pyrrha's roots, a node's number and a port's, as the links that they are."""
    links = result.links
    of: dict[str, list[str]] = {}
    for node, to in zip(links["from_node"], links["to_node"]):
        of.setdefault(str(node), []).append(f"{node}-{to}")
    first = list(
        dict.fromkeys(str(node) for node, tier in zip(links["from_node"], links["tier"]) if tier != "from_host")
    )
    hosts = [node for node in of if node not in set(first)]
    nodes = [*first, *hosts]

    def link(found: re.Match[str]) -> str:
        node, port = int(found[1]), int(found[2])
        known = node < len(nodes) and port < len(of[nodes[node]])
        return of[nodes[node]][port] if known else found[0]

    return lambda says: re.sub(r"\bnode (\d+), port (\d+)", link, says)


def whose(result: Result, rows: pd.DataFrame, most: int = 6) -> list[str]:
    """Whose these packets are, by flow, those with most bytes first."""
    flows: Any = result.flows.to_pandas().set_index("flow")
    sums = rows.groupby("flow")["bytes"].agg(["sum", "count"]).sort_values("sum", ascending=False, kind="stable")
    said = []
    for number, row in list(sums.iterrows())[:most]:
        sent = f"{int(row['sum']):,} B in {counted(int(row['count']))}"
        if (name := int(str(number).removesuffix(".0"))) not in flows.index:
            said.append(f"flow {name}, a message of a job that has no row: {sent}")
            continue
        flow: Any = flows.loc[name]
        said.append(f"flow {name}, host{flow['src']} to host{flow['dst']}, class {flow['class']}: {sent}")
    if len(sums) > most:
        rest = sums.iloc[most:]
        others = "another flow" if len(rest) == 1 else f"{len(rest):,} other flows"
        said.append(f"{others}: {int(rest['sum'].sum()):,} B in {counted(int(rest['count'].sum()))}")
    return said


def counted(packets: int) -> str:
    """A number of packets in words."""
    return "1 packet" if packets == 1 else f"{packets:,} packets"


def pause_of(says: str) -> tuple[str, bool] | None:
    """The subject of a frame of a flow control, and whether it pauses or resumes it. Pyrrha's MERGE lets go what was
    held
    for a root that was none: these packets drain (its Figure 6).
    """
    kind, _, rest = says.partition(" ")
    if found := re.match(r"Merge old (node \d+, port \d+, class \d+)", says):
        return f"root {found[1]}", False
    if kind in ("Pause", "Resume"):
        return rest.partition(", distance")[0], kind == "Pause"
    if found := re.search(r"classes (\d+), pause (\d+)", says):
        return f"classes {found[1]}", found[2] != "0"
    if found := re.search(r"queue (\d+), pause (true|false)", says):
        return f"queue {found[1]}", found[2] == "true"
    if kind in ("Isolate", "Release"):
        return rest, kind == "Isolate"
    return None


def pauses(result: Result) -> pd.DataFrame:
    """The packets that neighbours were told to hold back, and for how long: columns `node` (the receiver of the frame),
    `by` (its sender), `says`, `from_ps` and `to_ps`, which is the run's end if no later frame ends it. A frame is told
    when its last bit
    has left.
    """
    frame = packets(result)
    control = result.flows["transport"]
    frames = frame[frame["flow"].isna() & frame["link"].notna() & ~frame["transport"].isin(set(control))]
    begun: dict[tuple[str, str, str], tuple[float, str]] = {}
    rows = []
    for by, node, says, last in zip(frames["node"], frames["to_node"], frames["says"], frames["last_ps"]):
        found = pause_of(str(says))
        if found is None:
            continue
        what, is_pause = found
        key = (str(node), str(by), what)
        if is_pause:
            begun.setdefault(key, (float(last), str(says)))
        elif key in begun:
            since, words = begun.pop(key)
            rows.append((key[0], key[1], words, since, float(last)))
    end = float(result.info["end_ps"])
    rows += [(node, by, words, since, end) for (node, by, _), (since, words) in begun.items()]
    return pd.DataFrame(rows, columns=["node", "by", "says", "from_ps", "to_ps"]).sort_values("from_ps", kind="stable")


def way_of(result: Result, flow: int) -> list[str]:
    """Where a flow's packets waited, behind whose, and what the two hosts said to each other before it began to send;
    nothing if its packets were not recorded.
    """
    if "packets" not in result.tables:
        return []
    frame = packets(result)
    mine = frame[(frame["flow"] == flow) & (frame["payload_bytes"] > 0)]
    sent = mine[mine["link"].notna()]
    if not len(sent):
        return []
    said = _before(frame, result, flow, float(sent["time_ps"].min()))
    said += _hops(result, flow, sent)
    spent = sent["last_ps"].max() - sent["time_ps"].min()
    waits = sent.assign(wait_ps=sent["time_ps"] - sent["came_ps"])
    little: list[float] = []
    for link, rows in waits.groupby("link", sort=False):
        # A cause of less than a hundredth of its time explains nothing.
        if rows["wait_ps"].max() < spent / 100:
            little.append(float(rows["wait_ps"].max()))
            continue
        first: Any = rows.iloc[0]
        at = frame[frame["link"] == link]
        # Packets of other flows that left while one of its packets waited.
        before = at[(at["flow"] != flow) & _during(at["time_ps"], rows["came_ps"], rows["time_ps"])]
        name = f"{first['node']}-{first['to_node']}"
        behind = "; ".join(whose(result, before[before["flow"].notna()], most=2))
        said.append(
            f"For {name} its packets waited {rows['wait_ps'].mean() / 1e6:,.2f} µs on average, "
            f"{rows['wait_ps'].max() / 1e6:,.2f} µs at most" + (f", behind {behind}." if behind else ".")
        )
    if little:
        where = "On each other link" if len(little) < waits["link"].nunique() else "On each of these links"
        said.append(f"{where} they waited {max(little) / 1e6:,.2f} µs at most.")
    lost = mine[mine["lost"] != ""]
    for (node, why), rows in lost.groupby(["node", "lost"], sort=False, observed=True):
        were = "was" if len(rows) == 1 else "were"
        said.append(f"{len(rows):,} of its packets {were} lost at {node}: {why}.")
    return said


def _hops(result: Result, flow: int, sent: pd.DataFrame) -> list[str]:
    """The way that a flow's packets took, if they were recorded from its first link to its last."""
    source, destination = str(sent["source"].iloc[0]), str(sent["destination"].iloc[0])
    if not (sent["node"] == source).any() or not (sent["to_node"] == destination).any():
        return []
    nodes = []
    for _, rows in sent[sent["hop"] > 0].groupby("hop", sort=True):
        through = rows["node"].astype(str).value_counts(sort=False)
        through = through[through > 0]
        named = [str(name) if len(through) == 1 else f"{name} ({count:,})" for name, count in through.items()]
        named = named if len(named) <= MESSAGES else [*named[: MESSAGES - 1], f"{len(named) - MESSAGES + 1} more"]
        nodes.append(" or ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named))
    recorded, of = int((sent["node"] == source).sum()), result.flows.to_pandas().set_index("flow")["sent_packets"]
    all_ = int(of.loc[flow])
    packets = counted(recorded) if recorded >= all_ else f"{counted(recorded)} that were recorded, of {all_:,},"
    return [f"Its {packets} went from {source} by {', then '.join(nodes)} to {destination}."]


def matched(result: Result, one: Any) -> list[str]:
    """In which rounds of which phases the two hosts of a flow were matched (dcPIM), from the log of events or from
    recorded packets; nothing if there were no such rounds.
    """
    if "events" in result.tables and (result.events["event"] == "matching").any():
        rows = result.events.to_pandas()
        rows = rows[rows["event"] == "matching"]
    elif "packets" in result.tables:
        rows = packets(result)
        rows = rows[(rows["payload_bytes"] == 0) & (rows["hop"] == 0)]
    else:
        return []
    sender, receiver, start = f"host{one['src']}", f"host{one['dst']}", float(one["start_ps"])
    end = float(one["delivered_ps"]) if not pd.isna(one["delivered_ps"]) else float(result.info["end_ps"])
    source, destination = rows["source"].astype(str), rows["destination"].astype(str)
    between = (source == receiver) & (destination == sender) | (source == sender) & (destination == receiver)
    rows = rows[between & (rows["time_ps"].astype(float) >= start) & (rows["time_ps"].astype(float) <= end)]
    said = rows["says"].astype(str).str.extract(r"^(Request|Grant|Accept) phase (\d+), round (\d+), channels (\d+)")
    said.columns = pd.Index(["what", "phase", "round", "channels"])
    said = said.assign(at=rows["time_ps"].astype(float), by=rows["source"].astype(str)).dropna()
    # Requests of the receiver of this flow; the rest is about flows the other way.
    said = said[(said["by"] == receiver) == (said["what"] != "Grant")]
    said = said.astype({"phase": int, "round": int, "channels": int})
    if not len(said):
        return []
    accepted, asked = said[said["what"] == "Accept"], set(said["phase"][said["what"] == "Request"])
    in_vain = len(asked - set(accepted["phase"]))
    # Phases that follow each other and are alike are one.
    alike = accepted[["round", "channels"]].diff().ne(0).any(axis="columns") | accepted["phase"].diff().ne(1)
    rounds = []
    for _, some in accepted.groupby(alike.cumsum(), sort=True):
        one_, last = some.iloc[0], some.iloc[-1]
        phases = f"phases {one_['phase']} to {last['phase']}" if len(some) > 1 else f"phase {one_['phase']}"
        channels = "1 channel" if one_["channels"] == 1 else f"{one_['channels']} channels"
        times = " to ".join(f"{(at - start) / 1e6:,.2f}" for at in dict.fromkeys((one_["at"], last["at"])))
        rounds.append(f"{phases}, round {one_['round']}: {channels} ({times} µs after its start)")
    if len(rounds) > 2 * MESSAGES:
        # The last ones, too: a long flow is as slow as its late phases.
        left = len(rounds) - 2 * MESSAGES + 1
        rounds = [*rounds[:MESSAGES], f"{left} more", *rounds[len(rounds) - MESSAGES + 1 :]]
    asked_of = f"{receiver} asked {sender} for channels in {len(asked)} phase{'s' if len(asked) != 1 else ''}"
    got = f". It accepted, in {'; in '.join(rounds)}" if rounds else ""
    vain = f". In {in_vain} of them it got none" if in_vain else ""
    return [f"{asked_of}{got}{vain}."]


def _during(at: pd.Series[int], begins: pd.Series[float], ends: pd.Series[int]) -> pd.Series[bool]:
    """Whether a time is in one of some spans, of which none ends before an earlier one does."""
    begins, ends = begins.sort_values(), ends.sort_values()
    begun = np.searchsorted(begins, at, side="right")
    over = np.searchsorted(ends, at, side="right")
    return pd.Series(begun > over, index=at.index)


def _before(frame: pd.DataFrame, result: Result, flow: int, first_ps: float) -> list[str]:
    """The messages between its two hosts from its start to its first packet."""
    flows: Any = result.flows.to_pandas().set_index("flow").loc[flow]
    ends = {f"host{flows['src']}", f"host{flows['dst']}"}
    start = float(flows["start_ps"])
    control = frame[
        (frame["payload_bytes"] == 0)
        & frame["source"].isin(ends)
        & frame["destination"].isin(ends)
        & (frame["node"].astype(str) == frame["source"].astype(str))
        & (frame["time_ps"] >= start)
        & (frame["time_ps"] <= first_ps)
    ]
    messages = [
        f"{(at - start) / 1e6:,.2f} µs {source}: {says}"
        for at, source, says in zip(control["time_ps"], control["source"], control["says"])
    ]
    if len(messages) > MESSAGES:
        messages = [*messages[: MESSAGES - 1], f"and {len(messages) - MESSAGES + 1:,} more"]
    if not messages:
        return []
    return [
        f"Before its first packet left, {(first_ps - start) / 1e6:,.2f} µs after its start, its hosts said: "
        f"{'; '.join(messages)}."
    ]
