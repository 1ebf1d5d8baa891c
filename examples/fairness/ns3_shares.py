"""How equally equal flows share a port in ns-3: writes `examples/fairness/ns3.csv`, which `shares.py` puts beside ours.

    python -m venv /tmp/ns3 && /tmp/ns3/bin/pip install ns3==3.44.post0
    /tmp/ns3/bin/python examples/fairness/ns3_shares.py

The same star as `shares.py` has: links of equal rate, a switch that is an IPv4 router, and a tail-drop queue of the
same bytes at its port to the receiver. DCTCP's queue marks from a set length on (RED with both thresholds there and no
averaging, as in ns-3's own example of DCTCP). No timestamps, since ns-3 counts those in milliseconds; an
acknowledgement for every second packet, which is ns-3's default; a least timeout of 1 ms; buffers larger than any
window. ns-3's hosts have no jitter, and nothing is drawn. With an acknowledgement for each packet (`DelAckCount` 1) one
of two flows of NewReno that start together at 1 Gbps gets nothing there.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import time
from pathlib import Path

KEPT = Path(__file__).with_name("ns3.csv")
COLUMNS = ["links", "transport", "flows", "starts", "shares"]
TYPES = {"newreno": "TcpNewReno", "cubic": "TcpCubic", "dctcp": "TcpDctcp", "bbr": "TcpBbr"}
GAPS_NS = {"equal": 0, "37 us apart": 37_000}
# Rate, one link's delay, end in ms, buffer in bytes, bytes from which DCTCP's packets are marked.
LINKS = {
    "100 Gbps": ("100Gbps", "425ns", 100, 500_000, 97_500),
    "1 Gbps": ("1Gbps", "425ns", 10_000, 300_000, 30_000),
}
WARM_UP = 0.1


def run(links: str, transport: str, flows: int, starts: str) -> list[float]:
    """Shares of each flow, after the start."""
    from ns import ns

    rate, delay, end_ms, buffer, mark = LINKS[links]
    ns.Config.SetDefault("ns3::TcpL4Protocol::SocketType", ns.StringValue(f"ns3::{TYPES[transport]}"))
    for key, value in {
        "TcpSocket::SegmentSize": ns.UintegerValue(1448),
        "TcpSocket::SndBufSize": ns.UintegerValue(1 << 26),
        "TcpSocket::RcvBufSize": ns.UintegerValue(1 << 26),
        "TcpSocketBase::MinRto": ns.TimeValue(ns.MilliSeconds(1)),
        "TcpSocketBase::ClockGranularity": ns.TimeValue(ns.NanoSeconds(1)),
        "TcpSocketBase::Timestamp": ns.BooleanValue(False),
        "TcpSocket::InitialCwnd": ns.UintegerValue(10),
    }.items():
        ns.Config.SetDefault(f"ns3::{key}", value)
    nodes = ns.NodeContainer()
    nodes.Create(flows + 2)
    router, receiver = nodes.Get(flows), nodes.Get(flows + 1)
    ns.InternetStackHelper().Install(nodes)
    link = ns.PointToPointHelper()
    link.SetDeviceAttribute("DataRate", ns.StringValue(rate))
    link.SetChannelAttribute("Delay", ns.StringValue(delay))
    # The queue is the discipline's; the device holds the packet that it sends.
    link.SetQueue("ns3::DropTailQueue", "MaxSize", ns.StringValue("1p"))
    queue = ns.TrafficControlHelper()
    if transport == "dctcp":
        queue.SetRootQueueDisc(
            "ns3::RedQueueDisc", "MaxSize", ns.StringValue(f"{buffer}B"), "MinTh", ns.DoubleValue(mark),
            "MaxTh", ns.DoubleValue(mark), "QW", ns.DoubleValue(1), "UseEcn", ns.BooleanValue(True),
            "UseHardDrop", ns.BooleanValue(False), "Gentle", ns.BooleanValue(False),
            "MeanPktSize", ns.UintegerValue(1500),
            "LinkBandwidth", ns.StringValue(rate), "LinkDelay", ns.StringValue(delay),
        )  # fmt: skip
    else:
        queue.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", ns.StringValue(f"{buffer}B"))
    addresses = ns.Ipv4AddressHelper()
    for host in range(flows):
        devices = link.Install(nodes.Get(host), router)
        addresses.SetBase(ns.Ipv4Address(f"10.1.{host}.0"), ns.Ipv4Mask("255.255.255.0"))
        addresses.Assign(devices)
    last = link.Install(router, receiver)
    queue.Install(last.Get(0))
    addresses.SetBase(ns.Ipv4Address("10.2.0.0"), ns.Ipv4Mask("255.255.255.0"))
    interfaces = addresses.Assign(last)
    ns.Ipv4GlobalRoutingHelper.PopulateRoutingTables()
    sinks = []
    for host in range(flows):
        at = ns.InetSocketAddress(interfaces.GetAddress(1), 5000 + host).ConvertTo()
        sink = ns.PacketSinkHelper("ns3::TcpSocketFactory", at).Install(receiver)
        sinks.append(sink.Get(0))
        source = ns.BulkSendHelper("ns3::TcpSocketFactory", at)
        source.SetAttribute("MaxBytes", ns.UintegerValue(0))
        source.SetAttribute("SendSize", ns.UintegerValue(1448 * 10))
        source.Install(nodes.Get(host)).Start(ns.NanoSeconds(host * GAPS_NS[starts]))
    received = []
    for until_ms in (end_ms * WARM_UP, end_ms):
        ns.Simulator.Stop(ns.NanoSeconds(int(until_ms * 1e6)) - ns.Simulator.Now())
        ns.Simulator.Run()
        received.append([sink.__deref__().GetObject[ns.PacketSink]().GetTotalRx() for sink in sinks])
    counted = [after - before for before, after in zip(*received)]
    return [one / sum(counted) for one in counted]


def main() -> None:
    """Runs what is missing, each case as a program of its own, since ns-3 keeps state."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--links", choices=LINKS, action="append")
    parser.add_argument("--transports", default="dctcp,cubic,newreno,bbr")
    parser.add_argument("--counts", default="2,4,16")
    parser.add_argument("--one", nargs=4, help="run one case here, and print its shares")
    given = parser.parse_args()
    if given.one:
        links, transport, flows, starts = given.one
        print(*run(links, transport, int(flows), starts))
        return
    rows = list(csv.DictReader(KEPT.open())) if KEPT.exists() else []
    have = {tuple(row[column] for column in COLUMNS[:4]) for row in rows}
    for links in given.links or LINKS:
        for transport in given.transports.split(","):
            for count in given.counts.split(","):
                for starts in GAPS_NS:
                    case = (links, transport, count, starts)
                    if case in have:
                        continue
                    began = time.monotonic()
                    done = subprocess.run([sys.executable, __file__, "--one", *case], capture_output=True, text=True)
                    if done.returncode:
                        sys.exit(done.stderr)
                    shares = done.stdout.split()
                    rows.append(dict(zip(COLUMNS, (*case, " ".join(f"{float(one):.5f}" for one in shares)))))
                    print(*case, *shares, f"{time.monotonic() - began:.0f} s", flush=True)
                    with KEPT.open("w", newline="") as file:
                        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                        writer.writeheader()
                        writer.writerows(rows)


if __name__ == "__main__":
    main()
