"""dcPIM between hosts of unequal NICs, in whole networks: what arithmetic and other transports say."""

from __future__ import annotations

from pathlib import Path

import clearway as cw
import numpy as np
import pytest

# A star of hosts at 100 Gbps and slower ones, 200 ns of cable each, 450 ns in the switch.
HOP_US, SWITCH_US = 0.2, 0.45


def run(
    folder: Path,
    fast: int,
    slow: list[str],
    flows: list[tuple[int, int, int]],
    transport: str,
    timing: str = "ideal",
    seed: int = 1,
) -> cw.Result:
    """Flows of (source, destination, bytes) that begin at once, among `fast` hosts and then those of these rates."""
    rates = ["100Gbps"] * fast + slow
    graph = ["switch s 450ns", "host " + " ".join(f"h{index}" for index in range(len(rates)))]
    graph += [f"link h{index} s {rate} 200ns" for index, rate in enumerate(rates)]
    (folder / "star.graph").write_text("\n".join(graph) + "\n")
    lines = ["src,dst,size_bytes,start_ns", *(f"{src},{dst},{size},0" for src, dst, size in flows)]
    (folder / "flows.csv").write_text("\n".join(lines) + "\n")
    scenario = folder / "unequal.toml"
    scenario.write_text(
        f'timing = "{timing}"\nseed = {seed}\ntransport = "{transport}"\n'
        'measure.interval = "0s"\nfabric.file.path = "star.graph"\n'
        '[[traffic]]\nname = "m"\ntrace = { csv = { path = "flows.csv" } }\n'
    )
    return cw.run(scenario)


@pytest.mark.parametrize(("gbps", "size"), [(25, 25_000), (10, 20_000)])
def test_a_short_flow_to_a_slow_host_is_sent_once_and_takes_what_its_packets_take(
    tmp_path: Path, gbps: int, size: int
) -> None:
    result = run(tmp_path, 1, [f"{gbps}Gbps"], [(0, 1, size)], "dcpim")
    [fct], [again] = result.flows["fct_ps"] / 1e6, result.flows["resent_packets"]
    whole, rest = divmod(size, 1_460)
    # Notification and first packet on the fast link, then all packets on the slow one.
    wire = 40 + 1_500
    queued = whole * 1_500 + rest + 40
    expected = wire * 8e-5 + queued * 8e-3 / gbps + 2 * HOP_US + SWITCH_US
    assert again == 0
    # Finishes overtake the data on the slow link.
    assert expected <= fct <= expected * 1.01


def test_ten_slow_hosts_fill_a_fast_one(tmp_path: Path) -> None:
    result = run(tmp_path, 1, ["10Gbps"] * 10, [(slow, 0, 2_000_000) for slow in range(1, 11)], "dcpim")
    last_us = result.flows["fct_ps"].max() / 1e6
    assert result.flows["resent_packets"].sum() == 0
    # 1,644 us of packets on each slow link; over DCTCP 1,649.
    assert 1_644 <= last_us <= 1_644 * 1.05


def test_of_ten_slow_receivers_no_fixed_one_is_late(tmp_path: Path) -> None:
    """Grants take 1.3% of the sender's link, and channels promise all of it. The rest is missing to the flow that is
    behind (section 3.2: the sender may use remaining sizes to choose), whose tokens expire; which one is, is chance."""
    late = set()
    for seed in range(1, 9):
        flows = [(0, slow, 2_000_000) for slow in range(1, 11)]
        result = run(tmp_path, 1, ["10Gbps"] * 10, flows, "dcpim", timing="real", seed=seed)
        us = np.asarray(result.flows["fct_ps"]) / 1e6
        # 1,644 us of packets on each slow link; a tenth of those of a phase more at most.
        assert 1_644 <= us.min() <= np.median(us) <= 1_644 * 1.03
        assert us.max() <= 1_644 * 1.06
        late.add(int(us.argmax()))
    # If each is as likely, one alone or two are late in all with a chance below 1 in 6,000.
    assert len(late) > 2
