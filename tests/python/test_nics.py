"""Ranks bound to links of their hosts, rightly and wrongly, at flow level and with packets."""

import clearway as cw
import pytest

SERVERS, RAILS, BYTES = 4, 4, 8 << 20
TEXT = """
transport = "rdma"
flow_control = "pfc"
host = {{ mtu = "9048B", header = "48B" }}
switch.buffer.shared.bytes = "60MB"
measure.interval = "0s"
fabric.rails = {{ blocks = 1, servers_per_block = {servers}, rails = {rails}, spines = 0, host_rate = "400Gbps" }}
[[job]]
ranks_per_host = {ranks}
{nics}
steps = [{{ all_reduce = {{ bytes = "{bytes}B", among = {{ size = {servers}, stride = {ranks} }} }} }}]
"""


def bus(nics: str, level: str, ranks: int = RAILS) -> float:
    """Bus bandwidth of the slowest ring, in GB/s."""
    text = TEXT.format(servers=SERVERS, rails=RAILS, ranks=ranks, nics=nics, bytes=BYTES)
    result = cw.run(cw.Scenario.from_toml(text), level=level, progress=False)  # type: ignore[arg-type]
    return float(result.collectives["bus_bps"].min()) / 8e9


@pytest.mark.parametrize("level", ["flow", "packet"])
@pytest.mark.parametrize(
    ("nics", "rings"),
    [
        ('nics = "by_rank"', 1),  # a ring for each rail
        ("nics = { links = [3, 1, 0, 2] }", 1),  # the same in another order
        ("nics = { links = [0, 0, 2, 2] }", 2),  # two rings on a rail, and two rails idle
        ("nics = { links = [1, 1, 1, 3] }", 3),
    ],
)
def test_a_ring_has_its_share_of_the_links_it_is_bound_to(nics: str, rings: int, level: str) -> None:
    # 400 Gbps, of which headers take 48 B of 9,048; latencies of the 6 rounds take up to a tenth.
    most = 50 * (9000 / 9048) / rings
    assert 0.88 * most <= bus(nics, level) <= 1.005 * most


@pytest.mark.parametrize("level", ["flow", "packet"])
def test_two_ranks_share_no_link_unless_they_are_bound_to_one(level: str) -> None:
    # Of its two links a connection takes one, by the hash.
    alone = 50 * (9000 / 9048)
    assert 0.88 * alone <= bus('nics = "by_rank"', level, ranks=2) <= 1.005 * alone
    assert 0.88 * alone / 2 <= bus("nics = { links = [1, 1] }", level, ranks=2) <= 1.005 * alone / 2


def test_links_that_are_not_there_are_refused() -> None:
    with pytest.raises(cw.ScenarioError, match=r"nics\.links.*4 is no link: hosts have 4, from 0 on"):
        bus("nics = { links = [0, 1, 2, 4] }", "flow")
    with pytest.raises(cw.ScenarioError, match=r"has 2 links; write one for each of the 4 ranks of a host"):
        bus("nics = { links = [0, 1] }", "flow")


@pytest.mark.parametrize("level", ["flow", "packet"])
@pytest.mark.parametrize("kind", ["all_gather", "reduce_scatter"])
def test_parts_go_by_rails_at_the_rate_of_all_links(kind: str, level: str) -> None:
    text = TEXT.format(servers=SERVERS, rails=RAILS, ranks=RAILS, nics='nics = "by_rank"', bytes=BYTES)
    head, _ = text.split("steps = ")
    step = f'{{ {kind} = {{ bytes = "{BYTES}B", algorithm = "rails" }} }}'
    job = f'{head}local = {{ rate = "36Tbps", delay = "0s" }}\nsteps = [{step}]'
    result = cw.run(cw.Scenario.from_toml(job), level=level, progress=False)  # type: ignore[arg-type]
    # Each rank sends three quarters of its rail's quarter of the buffer, and three quarters of it within its host. Each
    # of three rounds over the network takes a switch, two links and a packet more.
    least = BYTES / RAILS * (SERVERS - 1) / SERVERS * 8 / 400e9 * (9048 / 9000)
    more = BYTES * (RAILS - 1) / RAILS * 8 / 36e12 + (SERVERS - 1) * (0.45e-6 + 2 * 0.2e-6 + 9048 * 8 / 400e9)
    assert least <= float(result.collectives["time_ps"][0]) / 1e12 <= least + 1.5 * more
    [name] = result.collectives["algorithm"]
    assert name == "rails"
