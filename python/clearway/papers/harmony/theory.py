"""Harmony's theory and what follows by arithmetic (NSDI 2024, sections 2 and 3): numbers beside the paper's, and
lone messages."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from clearway import harmony
from clearway.papers import figures
from clearway.papers.figures import Shown, cell, draw, part
from clearway.reports.looks import COLOURS

from . import setting
from .setting import K, run, table_of

# Section 2's switches: ports, their Gbps, buffer in MB.
SWITCHES = {
    "Maverick": (48, 10, 12),
    "Trident-2": (32, 40, 16),
    "Tomahawk": (32, 100, 22),
    "Tomahawk-2": (64, 100, 42),
    "Tomahawk-3": (32, 400, 64),
    "Tomahawk-4": (64, 400, 113),
}

SIZES = {"web search": "websearch_dcpim.txt", "IMC10": "imc10_dcpim.txt"}


def fat_tree_rtt_us(gbps: float) -> float:
    """A full packet there and a control packet back over six links and five switches of section 5's delays."""
    return 2 * (6 * 0.2 + 5 * 0.45) + 6 * (1500 + 40) * 8e-3 / gbps


def below_bdp(file: str, gbps: float) -> float:
    """The share of messages smaller than the fat-tree's bandwidth-delay product."""
    points = np.loadtxt(setting.HERE / file)
    return float(np.interp(fat_tree_rtt_us(gbps) * gbps * 1e3 / 8, points[:, 0] * 1460, points[:, -1]))


def figure_1() -> Shown:
    """The paper's motivation: unloaded round trips and delays of full buffers, share of messages below one
    bandwidth-delay product, and buffer size relative to switch capacity."""
    rows = {
        name: pd.Series(
            {
                "ports": ports,
                "Gbps": gbps,
                "unloaded RTT us": fat_tree_rtt_us(gbps),
                "full buffer us": mb * 8e3 / gbps,
                "buffer / capacity us": mb * 8e3 / gbps / ports,
            }
        )
        for name, (ports, gbps, mb) in SWITCHES.items()
    }
    table = table_of(rows, "switch")
    rates = (10, 25, 40, 100, 200, 400)
    shares = pd.DataFrame(
        {name: [below_bdp(file, gbps) for gbps in rates] for name, file in SIZES.items()},
        index=pd.Index(rates, name="Gbps"),
    )
    said = [("web search", 100, 0.54), ("web search", 400, 0.64), ("IMC10", 100, 0.82), ("IMC10", 400, 0.89)]
    held = figures.Held(
        "sizes of messages",
        "section 2: shares of messages below one bandwidth-delay product",
        "paper",
        pd.DataFrame(
            [
                (f"{name}, {gbps} Gbps", "share below 1 BDP", shares.loc[gbps, name], theirs, 0.05)
                for name, gbps, theirs in said
            ],
            columns=list(figures.Held.COLUMNS),
        ),
        "none",
    )
    checks = {
        f"a full buffer delays {(table['full buffer us'] / table['unloaded RTT us']).min():.0f} times "
        "an unloaded round trip, or more": bool((table["full buffer us"] > 100 * table["unloaded RTT us"]).all()),
        "buffers grow more slowly than capacities": table["buffer / capacity us"].is_monotonic_decreasing,
    }
    delays = table.groupby("Gbps")[["unloaded RTT us", "full buffer us"]].max()
    panels = [
        setting.lines("Delays, fat-tree", pd.DataFrame(np.log10(delays)), "Gbps", "log10 of delay (us)", log_x=True),
        setting.lines("Messages below 1 BDP", shares, "Gbps", "share", log_x=True, top=1),
        setting.bars("Buffers", table[["buffer / capacity us"]], "buffer / total port rate (us)"),
    ]
    return Shown(table, checks, draw(panels), [held])


def figure_4() -> Shown:
    """Slots that are filled by K, as a share of what an ideal algorithm fills: Theorem 3.2, a simulation of its model,
    and a simulation of the protocol's rule."""
    rows = {}
    for k in (1, 2, 4, 8, 16, 32, 64):
        drawn = harmony.allocation(k, cores=32, trials=1000).loc[1]
        tries = harmony.allocation(k, cores=32, leaves=64, tries=4, trials=10)["filled"]
        rows[k] = pd.Series(
            {
                "f(K, 32)": harmony.slot_efficiency(k, 32),
                "drawn": drawn["filled"],
                "standard error": drawn["standard error"],
                "among free links": tries[1],
                "4 tries": tries[4],
            }
        )
    table = table_of(rows, "K")
    off = ((table["drawn"] - table["f(K, 32)"]) / table["standard error"]).abs()
    one, many = (cell(table, k, "f(K, 32)") for k in (1, 64))
    checks = {
        f"K = 1 fills {one:.3f} (paper: 1 - 1/e, 0.632, for many cores)": abs(one - (1 - 1 / math.e)) < 0.01,
        "drawings give the theorem, within 4 standard errors": bool((off < 4).all()),
        "more virtual links fill more, towards 1": table["f(K, 32)"].is_monotonic_increasing and many > 0.95,
    }
    columns = table[["f(K, 32)", "drawn", "among free links", "4 tries"]]
    numbers = [
        (f"K = {k}, 32 cores", "slots filled / ideal", table.loc[k, "drawn"], table.loc[k, "f(K, 32)"], 0.01)
        for k in table.index
    ]
    rows_held = pd.DataFrame(numbers, columns=list(figures.Held.COLUMNS))
    paper = pd.DataFrame(
        [("K = 1", "slots filled / ideal", table.loc[1, "drawn"], 1 - 1 / math.e, 0.02)], columns=rows_held.columns
    )
    held = [
        figures.Held("harmony", "Theorem 3.2, 1,000 drawings", "closed form", rows_held),
        figures.Held("rsvp", "section 3.3: K = 1 fills 1 - 1/e for many cores", "paper", paper),
    ]
    return Shown(
        table,
        checks,
        draw([setting.lines("32 cores", columns, "K", "slots filled / ideal", log_x=True, top=1.05)]),
        held,
    )


def adversary() -> Shown:
    """Packets queued at each switch of a path under the worst arrivals that an adversary finds, beside Theorem 3.1 and
    the proven bound."""
    tables = {k: harmony.adversary(k, 5) for k in (2, 4, 8, 16)}
    table = pd.concat(tables, names=["K"])
    checks = {
        "Theorem 3.1 is reached at the first two switches": all(
            bool((of["found"] == of["theorem 3.1"]).loc[:2].all()) for of in tables.values()
        ),
        "Theorem 3.1 fails from the third switch on for K of 4 and more": bool(
            all((of["found"] > of["theorem 3.1"]).loc[3:].all() for k, of in tables.items() if k > 2)
        ),
        "with K = 2 no more is found than Theorem 3.1 has": bool(
            (tables[2]["found"] <= tables[2]["theorem 3.1"]).all()
        ),
        "what is proven holds": bool((table["found"] <= table["proven"]).all()),
    }
    panels = [setting.lines(f"K = {k}", of, "switch", "packets queued") for k, of in tables.items() if k > 2]
    return Shown(table, checks, draw(panels))


# Of all packets and of control packets, in ps: on links of 100 and 400 Gbps, and section 5's delays of four links and
# three switches.
FULL_PS, CONTROL_PS, FLIGHT_PS = 2 * (120_000 + 30_000), 2 * (3_200 + 800), 4 * 200_000 + 3 * 450_000

# Within a rack, to Fastpass's arbiter.
NEAR_PS = 2 * (3_200 + 200_000) + 450_000


def lone_ps(scheme: str, packets: int) -> int:
    """The time of a lone message of full packets to another rack."""
    last = packets - 1
    if scheme == "fastpass":
        # A slot has 1% for control, and is a multiple of the four lanes of a spine's links; the first begins behind the
        # longest way of an allocation and eleven slots of slack.
        slot = 121_216
        begin = -(-(NEAR_PS + CONTROL_PS + FLIGHT_PS + 11 * slot) // slot) * slot
        return begin + last * slot + FULL_PS + FLIGHT_PS
    # A request and a rsvp; then K packets leave back to back, and each slot's next a period later.
    k, period = (1, 121_213) if scheme == "rsvp" else (K, 969_697)
    sending = last // k * period + last % k * 120_000
    return 2 * (CONTROL_PS + FLIGHT_PS) + sending + FULL_PS + FLIGHT_PS


def lone() -> Shown:
    """Completion times of messages of 1 to 88 packets that are alone in the network, with Harmony, RSVP and Fastpass,
    beside arithmetic; and the unloaded round trip."""
    rows = {}
    for scheme in ("harmony", "rsvp", "fastpass"):
        for packets in (1, 8, 9, 24, 88):
            of = {
                "transport": {scheme: setting.in_service() if scheme == "harmony" else {}},
                "traffic.0": {
                    "name": "lone",
                    "sizes": {"constant": f"{packets * 1460}B"},
                    "arrivals": "all_at_once",
                    # In the arbiter's rack.
                    "senders": "5",
                    "receivers": "143",
                    "flows": 1,
                },
            }
            result = run("leaf-spine", f"lone {scheme} {packets}", of)
            rows[(scheme, packets)] = pd.Series(
                {"us": float(result.flows["fct_ps"][0]) / 1e6, "arithmetic": lone_ps(scheme, packets) / 1e6}
            )
    table = table_of(rows, ["scheme", "packets"])
    held = []
    for scheme in ("harmony", "rsvp", "fastpass"):
        # Completes of other slots may overtake a packet on another way: up to seven of 3.2 ns.
        numbers = [
            (f"{packets} packets", "FCT, us", row["us"], row["arithmetic"], 0.005)
            for packets, row in table.loc[scheme].iterrows()
        ]
        frame = pd.DataFrame(numbers, columns=list(figures.Held.COLUMNS))
        held.append(
            figures.Held(
                scheme, "a lone message between racks of section 5's leaf-spine, by arithmetic", "closed form", frame
            )
        )
    rtt = pd.DataFrame(
        [("leaf-spine", "unloaded RTT, us", result.info["data_rtt_ps"] / 1e6, 4.6, 0.01)], columns=frame.columns
    )
    held.append(figures.Held("harmony", "section 5: the unloaded round trip", "paper", rtt, "none"))
    return Shown(table, {}, None, held)


def theory() -> Shown:
    """The numbers that section 3.3 derives from Theorem 3.1, equation (1) and Theorem 3.2."""
    said = [
        ("fat-tree of Tomahawks", "K*", harmony.k_star(22_000_000, ports=32), 91, 0.005),
        ("fat-tree of Tomahawk-4s", "K*", harmony.k_star(113_000_000, ports=64), 235, 0.005),
        (
            "fat-tree, 100 Gbps, K = 8",
            "equation (1), us",
            harmony.queueing_delay_max_us(k=8, switches=5, rate_gbps=100),
            12.6,
            0.005,
        ),
        (
            "fat-tree, 400 Gbps, K = 8",
            "equation (1), us",
            harmony.queueing_delay_max_us(k=8, switches=5, rate_gbps=400),
            3.15,
            0.005,
        ),
        ("K = 1, 32 cores", "f(K, C)", harmony.slot_efficiency(1, 32), 1 - 1 / math.e, 0.02),
    ]
    table = pd.DataFrame(said, columns=list(figures.Held.COLUMNS))
    held = figures.Held("harmony", "section 3.3: numbers of its theorems", "paper", table, "none")
    return Shown(table.set_index(["bucket", "statistic"]), {}, None, [held])


def counterexample() -> Shown:
    """27 messages, one a host, that exceed Theorem 3.1 where links serve packets in the order of arrival: packets
    queued at each switch of a path."""
    k, packet = 3, 1_500
    rows, over_time = {}, {}
    for service in ("fifo", "round_robin"):
        result = run("counterexample", service, {"transport.harmony.service": service})
        of = result.tables["guarantees"].to_arrow().to_pandas()
        for switch, tier in enumerate(("up", "down", "to_host"), 1):
            at = of[of["tier"] == tier]
            rows[(service, switch)] = pd.Series(
                {
                    "packets": at["queue_max_bytes"].max() / packet,
                    "theorem 3.1": harmony.queue_max_bytes(k, switches=3) / packet,
                    "proven": (2 ** (switch - 1) if service == "fifo" else switch) * (k - 1),
                    "audited": at["queue_bound_bytes"].max() / packet,
                }
            )
        queues = result.tables["queues"].to_arrow().to_pandas()
        over_time[service] = queues[queues["switch"] == "leaf9"]
        if (result.flows["status"] != "completed").any():
            raise ValueError(f"{result.name}: a message was not delivered")
    table = table_of(rows, ["service", "switch"]).astype(float)
    fifo, in_turn = part(table, "fifo"), part(table, "round_robin")
    waited, theorem = cell(fifo, 3, "packets"), cell(fifo, 3, "theorem 3.1")
    # Control packets wait beside data: a few of 40 bytes.
    few = 10 * 40 / packet
    checks = {
        f"in the order of arrival {waited:.2f} packets wait, above Theorem 3.1's {theorem:g}": (
            int(waited) == 7 and theorem == 6
        ),
        "and no more than is proven of it, at each switch": bool((fifo["packets"] <= fifo["proven"] + few).all()),
        f"in turn {cell(in_turn, 3, 'packets'):.2f} wait, and i (K - 1) or fewer at each switch": bool(
            (in_turn["packets"] <= in_turn["proven"] + few).all()
        ),
    }

    def panel(axes: Axes) -> None:
        names = {"fifo": "in the order of arrival", "round_robin": "in turn"}
        busy = pd.concat(over_time.values()).query(f"longest_bytes >= {packet}")["time_ps"] / 1e6
        for colour, (service, queue) in zip(COLOURS, over_time.items()):
            axes.step(
                queue["time_ps"] / 1e6,
                queue["longest_bytes"] / packet,
                where="post",
                color=colour,
                label=names[service],
            )
        axes.axhline(3 * (k - 1), color="#009e73", linestyle=":", label="Theorem 3.1")
        axes.set(
            title="The link where three messages meet, K = 3",
            xlabel="us",
            ylabel="packets queued",
            ylim=(0, 9),
            xlim=(busy.min() - 0.3, busy.max() + 0.3),
        )
        axes.legend(fontsize=7)

    return Shown(table, checks, draw([panel]))
