"""The queue of two endless flows of DCTCP in ns-3: writes `python/clearway/papers/ns3/dctcp_queue.csv`, which `clearway
paper ns3 dctcp-queue` puts beside ours.

    python -m venv /tmp/ns3 && /tmp/ns3/bin/pip install ns3==3.44.post0
    /tmp/ns3/bin/python examples/fairness/ns3_queue.py

The star of `ns3_shares.py`, with two senders. The queue is that of the discipline at the port to the receiver, without
the two packets in the device below it: one is being sent, one waits. It is looked at every 5.03 us for 15 ms.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

KEPT = Path("python/clearway/papers/ns3/dctcp_queue.csv")
# A packet as the router's queue counts it: 1,448 B of payload, TCP's header and IP's.
PACKET = 1488
RATES = {"1Gbps": 30_000, "10Gbps": 97_500}
PER_ACK = (1, 2)


def run(rate: str, mark: int, per_ack: int) -> list[int]:
    """Bytes in the queue at each look."""
    from ns import ns

    for key, value in {
        "TcpL4Protocol::SocketType": ns.StringValue("ns3::TcpDctcp"),
        "TcpSocket::SegmentSize": ns.UintegerValue(1448),
        "TcpSocket::SndBufSize": ns.UintegerValue(1 << 26),
        "TcpSocket::RcvBufSize": ns.UintegerValue(1 << 26),
        "TcpSocketBase::MinRto": ns.TimeValue(ns.MilliSeconds(1)),
        "TcpSocketBase::ClockGranularity": ns.TimeValue(ns.NanoSeconds(1)),
        "TcpSocketBase::Timestamp": ns.BooleanValue(False),
        "TcpSocket::InitialCwnd": ns.UintegerValue(10),
        "TcpSocket::DelAckCount": ns.UintegerValue(per_ack),
    }.items():
        ns.Config.SetDefault(f"ns3::{key}", value)
    nodes = ns.NodeContainer()
    nodes.Create(4)
    router, receiver = nodes.Get(2), nodes.Get(3)
    ns.InternetStackHelper().Install(nodes)
    link = ns.PointToPointHelper()
    link.SetDeviceAttribute("DataRate", ns.StringValue(rate))
    link.SetChannelAttribute("Delay", ns.StringValue("425ns"))
    link.SetQueue("ns3::DropTailQueue", "MaxSize", ns.StringValue("1p"))
    queue = ns.TrafficControlHelper()
    queue.SetRootQueueDisc(
        "ns3::RedQueueDisc", "MaxSize", ns.StringValue("500000B"), "MinTh", ns.DoubleValue(mark),
        "MaxTh", ns.DoubleValue(mark), "QW", ns.DoubleValue(1), "UseEcn", ns.BooleanValue(True),
        "UseHardDrop", ns.BooleanValue(False), "Gentle", ns.BooleanValue(False),
            "MeanPktSize", ns.UintegerValue(1500),
        "LinkBandwidth", ns.StringValue(rate), "LinkDelay", ns.StringValue("425ns"),
    )  # fmt: skip
    addresses = ns.Ipv4AddressHelper()
    for host in range(2):
        devices = link.Install(nodes.Get(host), router)
        addresses.SetBase(ns.Ipv4Address(f"10.1.{host}.0"), ns.Ipv4Mask("255.255.255.0"))
        addresses.Assign(devices)
    last = link.Install(router, receiver)
    disciplines = queue.Install(last.Get(0))
    addresses.SetBase(ns.Ipv4Address("10.2.0.0"), ns.Ipv4Mask("255.255.255.0"))
    interfaces = addresses.Assign(last)
    ns.Ipv4GlobalRoutingHelper.PopulateRoutingTables()
    for host in range(2):
        at = ns.InetSocketAddress(interfaces.GetAddress(1), 5000 + host).ConvertTo()
        ns.PacketSinkHelper("ns3::TcpSocketFactory", at).Install(receiver)
        source = ns.BulkSendHelper("ns3::TcpSocketFactory", at)
        source.SetAttribute("MaxBytes", ns.UintegerValue(0))
        source.SetAttribute("SendSize", ns.UintegerValue(14_480))
        source.Install(nodes.Get(host)).Start(ns.NanoSeconds(1_000_000))
    found = []
    for look in range(3_000):
        ns.Simulator.Stop(ns.NanoSeconds(5_000_000 + look * 5_030) - ns.Simulator.Now())
        ns.Simulator.Run()
        found.append(int(disciplines.Get(0).__deref__().GetNBytes()))
    return found


def main() -> None:
    """Runs each case as a program of its own, since ns-3 keeps state."""
    if len(sys.argv) > 1:
        rate, mark, per_ack = sys.argv[1:]
        print("looks:", *run(rate, int(mark), int(per_ack)))
        return
    with KEPT.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["rate", "mark_bytes", "packets_per_ack", "mean_packets", "most_packets"])
        for rate, mark in RATES.items():
            for per_ack in PER_ACK:
                words = [sys.executable, __file__, rate, str(mark), str(per_ack)]
                said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
                looks = [int(word) for word in said.partition("looks:")[2].split("\n")[0].split()]
                mean, most = sum(looks) / len(looks) / PACKET, max(looks) / PACKET
                rows.writerow([rate, mark, per_ack, f"{mean:.2f}", f"{most:.0f}"])
                file.flush()


if __name__ == "__main__":
    main()
