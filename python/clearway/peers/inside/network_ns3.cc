// A network of point-to-point links with TCP flows, for ns-3 3.44: what `clearway against ns3` asks for.
//
// `run_ns3.py` compiles this by cppyy and calls `against::run`. The request and the answer are lines of numbers, in
// `ns3.py`'s words. Times are in picoseconds.
#include <cstdint>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

namespace against {

using namespace ns3;

constexpr uint32_t FIRST_ADDRESS = 0x0a000001;  // 10.0.0.1 is host 0

// Of one node: which interfaces lead to each host by a shortest path. Each flow hashes to one of them, as ECMP does;
// with `spray`, each packet is given any of them.
class ShortestPaths : public Ipv4RoutingProtocol {
 public:
  std::vector<std::vector<uint32_t>> toHost;
  uint64_t salt = 0;
  Ptr<UniformRandomVariable> spray;

  Ptr<Ipv4Route> RouteOutput(Ptr<Packet> packet, const Ipv4Header& header, Ptr<NetDevice>,
                             Socket::SocketErrno& error) override {
    Ptr<Ipv4Route> found = Route(packet, header);
    error = found ? Socket::ERROR_NOTERROR : Socket::ERROR_NOROUTETOHOST;
    return found;
  }

  bool RouteInput(Ptr<const Packet> packet, const Ipv4Header& header, Ptr<const NetDevice> from,
                  const UnicastForwardCallback& forward, const MulticastForwardCallback&,
                  const LocalDeliverCallback& deliver, const ErrorCallback&) override {
    uint32_t interface = m_ipv4->GetInterfaceForDevice(from);
    if (m_ipv4->IsDestinationAddress(header.GetDestination(), interface)) {
      deliver(packet, header, interface);
      return true;
    }
    Ptr<Ipv4Route> found = Route(packet, header);
    if (!found) {
      return false;
    }
    forward(found, packet, header);
    return true;
  }

  void NotifyInterfaceUp(uint32_t) override {}
  void NotifyInterfaceDown(uint32_t) override {}
  void NotifyAddAddress(uint32_t, Ipv4InterfaceAddress) override {}
  void NotifyRemoveAddress(uint32_t, Ipv4InterfaceAddress) override {}
  void SetIpv4(Ptr<Ipv4> ipv4) override { m_ipv4 = ipv4; }
  void PrintRoutingTable(Ptr<OutputStreamWrapper>, Time::Unit) const override {}

 private:
  Ptr<Ipv4> m_ipv4;

  Ptr<Ipv4Route> Route(Ptr<const Packet> packet, const Ipv4Header& header) {
    uint32_t host = header.GetDestination().Get() - FIRST_ADDRESS;
    if (host >= toHost.size() || toHost[host].empty()) {
      return nullptr;
    }
    const std::vector<uint32_t>& ways = toHost[host];
    uint32_t way = 0;
    if (ways.size() > 1) {
      way = spray ? spray->GetInteger(0, ways.size() - 1) : Hash(packet, header) % ways.size();
    }
    Ptr<Ipv4Route> route = Create<Ipv4Route>();
    route->SetDestination(header.GetDestination());
    route->SetSource(m_ipv4->GetAddress(ways[way], 0).GetLocal());
    route->SetGateway(Ipv4Address::GetAny());
    route->SetOutputDevice(m_ipv4->GetNetDevice(ways[way]));
    return route;
  }

  uint64_t Hash(Ptr<const Packet> packet, const Ipv4Header& header) const {
    TcpHeader tcp;
    if (packet) {
      packet->PeekHeader(tcp);
    }
    uint64_t value = salt ^ (uint64_t(header.GetSource().Get()) << 32 | header.GetDestination().Get());
    for (uint64_t part : {uint64_t(tcp.GetSourcePort()) << 16 | tcp.GetDestinationPort(), salt}) {
      // SplitMix64's finaliser: neighbouring ports and addresses spread over all ways.
      value = (value ^ part) + 0x9e3779b97f4a7c15ULL;
      value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
      value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
      value ^= value >> 31;
    }
    return value;
  }
};

struct Flow {
  uint32_t source, destination;
  uint64_t bytes;
  Time start;
  std::string control;
  Ptr<Socket> sender, listener, receiver;
  bool connected = false;
  uint64_t written = 0, received = 0;
  int64_t delivered = -1;
};

struct Port {
  Ptr<QueueDisc> queue;
  uint32_t most = 0;
};

std::vector<Flow> flows;
std::vector<Port> ports;
std::vector<Ptr<Node>> nodes;
size_t unfinished = 0;
Time origin;
bool classicRecovery = true;

void Fill(uint32_t index) {
  Flow& flow = flows[index];
  while (flow.connected && Simulator::Now() >= flow.start && flow.written < flow.bytes) {
    uint64_t room = std::min<uint64_t>(flow.sender->GetTxAvailable(), flow.bytes - flow.written);
    if (room == 0) {
      return;
    }
    int sent = flow.sender->Send(Create<Packet>(std::min<uint64_t>(room, 1 << 20)));
    if (sent <= 0) {
      return;
    }
    flow.written += sent;
  }
}

void Room(uint32_t index, Ptr<Socket>, uint32_t) { Fill(index); }

void Connected(uint32_t index, Ptr<Socket>) {
  flows[index].connected = true;
  Fill(index);
}

void Refused(uint32_t, Ptr<Socket>) {}

void Arrived(uint32_t index, Ptr<Socket> socket) {
  Flow& flow = flows[index];
  while (Ptr<Packet> packet = socket->Recv()) {
    flow.received += packet->GetSize();
  }
  if (flow.received >= flow.bytes && flow.delivered < 0) {
    flow.delivered = (Simulator::Now() - origin).GetPicoSeconds();
    if (--unfinished == 0) {
      Simulator::Stop();
    }
  }
}

void Accepted(uint32_t index, Ptr<Socket> socket, const Address&) {
  flows[index].receiver = socket;
  socket->SetRecvCallback(MakeBoundCallback(&Arrived, index));
}

Ptr<Socket> Opened(uint32_t node, const std::string& control) {
  TypeId recovery = classicRecovery ? TcpClassicRecovery::GetTypeId() : TcpPrrRecovery::GetTypeId();
  return nodes[node]->GetObject<TcpL4Protocol>()->CreateSocket(TypeId::LookupByName(control), recovery);
}

void Open(uint32_t index, uint16_t port) {
  Flow& flow = flows[index];
  // The receiver's congestion control too: DCTCP's receiver echoes each mark.
  flow.listener = Opened(flow.destination, flow.control);
  flow.listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
  flow.listener->Listen();
  flow.listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                   MakeBoundCallback(&Accepted, index));
  flow.sender = Opened(flow.source, flow.control);
  flow.sender->SetConnectCallback(MakeBoundCallback(&Connected, index), MakeBoundCallback(&Refused, index));
  flow.sender->SetSendCallback(MakeBoundCallback(&Room, index));
  flow.sender->Bind();
  flow.sender->Connect(InetSocketAddress(Ipv4Address(FIRST_ADDRESS + flow.destination), port));
}

void Length(uint32_t index, uint32_t, uint32_t bytes) {
  ports[index].most = std::max(ports[index].most, bytes);
}

void Said(Time every) {
  std::cerr << "progress " << (Simulator::Now() - origin).GetPicoSeconds() << " " << flows.size() - unfinished << "\n"
            << std::flush;
  Simulator::Schedule(every, &Said, every);
}

// The queue of one port. `bytes` 0: that of a host, where flows take turns and nothing is lost; one queue for all would
// have short messages wait behind windows of long ones. `min` 0: nothing is marked. Lengths are those of IP packets,
// without the link's header.
Ptr<QueueDisc> Queue(uint64_t bytes, double min, double max, double most, int gentle) {
  std::string size = std::to_string(bytes) + "B";
  Ptr<QueueDisc> queue;
  if (bytes == 0) {
    // Its delays are never too long, and so CoDel drops nothing.
    return CreateObjectWithAttributes<FqCoDelQueueDisc>(
        "MaxSize", StringValue("1000000000p"), "Interval", StringValue("1000s"), "Target", StringValue("1000s"),
        "Flows", UintegerValue(1 << 16), "UseEcn", BooleanValue(false));
  }
  if (min > 0) {
    // The threshold counts the packet that comes with Clearway; RED looks before it adds the packet.
    queue = CreateObjectWithAttributes<RedQueueDisc>(
        "MaxSize", StringValue(size), "MinTh", DoubleValue(min), "MaxTh", DoubleValue(max), "QW", DoubleValue(1),
        "LInterm", DoubleValue(1 / most), "UseEcn", BooleanValue(true), "UseHardDrop", BooleanValue(false), "Gentle",
        BooleanValue(gentle != 0), "MeanPktSize", UintegerValue(1500), "Ns1Compat", BooleanValue(false));
  } else {
    queue = CreateObjectWithAttributes<FifoQueueDisc>("MaxSize", StringValue(size));
  }
  return queue;
}

// Reads the request, runs it, writes the answer.
void run(const char* request, const char* answer) {
  std::ifstream in(request);
  uint32_t nodeCount, hostCount, linkCount, flowCount;
  uint64_t salt;
  int64_t lead, end, every;
  int spray, prr;
  in >> nodeCount >> hostCount >> linkCount >> flowCount >> salt >> lead >> end >> every >> spray >> prr;
  classicRecovery = prr == 0;
  origin = PicoSeconds(lead);

  InternetStackHelper stack;
  std::vector<Ptr<ShortestPaths>> paths;
  for (uint32_t node = 0; node < nodeCount; ++node) {
    nodes.push_back(CreateObject<Node>());
    stack.Install(nodes.back());
    Ptr<ShortestPaths> of = Create<ShortestPaths>();
    of->salt = salt * 1000003 + node;
    of->toHost.resize(hostCount);
    if (spray) {
      of->spray = CreateObject<UniformRandomVariable>();
      of->spray->SetStream(node + 1);
    }
    nodes.back()->GetObject<Ipv4>()->SetRoutingProtocol(of);
    paths.push_back(of);
  }
  uint32_t unused = 0xac100001;  // 172.16.0.1: switches' own addresses, which no packet has
  for (uint32_t link = 0; link < linkCount; ++link) {
    uint32_t ends[2];
    int64_t delay;
    in >> ends[0] >> ends[1] >> delay;
    Ptr<PointToPointChannel> channel =
        CreateObjectWithAttributes<PointToPointChannel>("Delay", TimeValue(PicoSeconds(delay)));
    for (uint32_t side : {0, 1}) {
      uint64_t rate, bytes;
      double min, max, most;
      int gentle;
      in >> rate >> bytes >> min >> max >> most >> gentle;
      Ptr<Node> node = nodes[ends[side]];
      Ptr<PointToPointNetDevice> device = CreateObject<PointToPointNetDevice>();
      device->SetAddress(Mac48Address::Allocate());
      device->SetDataRate(DataRate(rate));
      device->SetMtu(9600);
      // The queue is the discipline's; the device holds the packet that it sends, and the next one.
      device->SetQueue(CreateObjectWithAttributes<DropTailQueue<Packet>>("MaxSize", StringValue("1p")));
      node->AddDevice(device);
      device->Attach(channel);
      Ptr<NetDeviceQueueInterface> interface = CreateObject<NetDeviceQueueInterface>();
      interface->GetTxQueue(0)->ConnectQueueTraces(device->GetQueue());
      device->AggregateObject(interface);
      Ptr<QueueDisc> queue = Queue(bytes, min, max, most, gentle);
      node->GetObject<TrafficControlLayer>()->SetRootQueueDiscOnDevice(device, queue);
      ports.push_back({queue, 0});
      queue->TraceConnectWithoutContext("BytesInQueue", MakeBoundCallback(&Length, uint32_t(ports.size() - 1)));
      Ptr<Ipv4> ipv4 = node->GetObject<Ipv4>();
      uint32_t number = ipv4->AddInterface(device);
      uint32_t address = ends[side] < hostCount ? FIRST_ADDRESS + ends[side] : unused++;
      ipv4->AddAddress(number, Ipv4InterfaceAddress(Ipv4Address(address), Ipv4Mask::GetOnes()));
      ipv4->SetMetric(number, 1);
      ipv4->SetUp(number);
    }
  }
  // For each node and host: how many links lead there by a shortest path, and their numbers at the node, from 1 on.
  for (uint32_t node = 0; node < nodeCount; ++node) {
    for (uint32_t host = 0; host < hostCount; ++host) {
      uint32_t count;
      in >> count;
      paths[node]->toHost[host].resize(count);
      for (uint32_t& interface : paths[node]->toHost[host]) {
        in >> interface;
      }
    }
  }
  std::vector<uint16_t> next(hostCount, 1024);
  flows.resize(flowCount);
  unfinished = flowCount;
  for (uint32_t index = 0; index < flowCount; ++index) {
    Flow& flow = flows[index];
    int64_t start, before;
    in >> flow.source >> flow.destination >> flow.bytes >> start >> before >> flow.control;
    flow.start = origin + PicoSeconds(start);
    Simulator::Schedule(flow.start - PicoSeconds(before), &Open, index, next[flow.destination]++);
    Simulator::Schedule(flow.start, &Fill, index);
  }
  if (!in) {
    std::cerr << "the request is cut off\n";
    return;
  }
  Simulator::Schedule(origin + PicoSeconds(every), &Said, PicoSeconds(every));
  Simulator::Stop(origin + PicoSeconds(end));
  Simulator::Run();

  std::ofstream out(answer);
  out << (Simulator::Now() - origin).GetPicoSeconds() << "\n";
  for (const Flow& flow : flows) {
    out << flow.delivered << " " << flow.received << "\n";
  }
  for (const Port& port : ports) {
    const QueueDisc::Stats& stats = port.queue->GetStats();
    out << stats.nTotalDroppedPackets << " " << stats.nTotalMarkedPackets << " " << port.most << "\n";
  }
}

}  // namespace against
