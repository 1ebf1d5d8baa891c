//! The kernel's own TCP and UDP over a fabric, between network namespaces. Needs root, `ip` and /dev/net/tun.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clearway_live::{RunResult, run, run_processes};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::processes::command;
use crate::run::{Watch, assert_if_in_time, column, finding, live_while, read};

/// Namespaces, deleted when this goes.
pub(crate) struct Namespaces(pub Vec<String>);

impl Namespaces {
    /// So many; or why there can be none here.
    pub fn new(count: usize, test: &str) -> Result<Namespaces, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("it is not run as root".to_owned());
        }
        if !std::path::Path::new("/dev/net/tun").exists() {
            return Err("there is no /dev/net/tun".to_owned());
        }
        let mut made = Namespaces(Vec::new());
        for index in 0..count {
            let name = format!("clearway-{test}-{}-{index}", std::process::id());
            let added = Command::new("ip").args(["netns", "add", &name]).output();
            match added {
                Ok(output) if output.status.success() => made.0.push(name),
                Ok(output) => return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
                Err(error) => return Err(format!("ip: {error}")),
            }
        }
        Ok(made)
    }

    /// The same; where there can be none, says so on standard error.
    pub fn or_skip(count: usize, test: &str) -> Option<Namespaces> {
        let made = Namespaces::new(count, test);
        // By the stream itself: what a test that passes prints is not shown.
        made.inspect_err(|why| drop(writeln!(std::io::stderr(), "skipped, attached hosts: {why}"))).ok()
    }

    pub fn enter(&self, index: usize) {
        let place = File::open(format!("/var/run/netns/{}", self.0[index])).expect("it was made");
        move_into_link_name_space(place.as_fd(), Some(LinkNameSpaceType::Network)).expect("root may");
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
}

fn address(host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, host + 1)
}

/// Lets a scenario live, in one process, while `programs` run in a thread of their own.
fn live_with(text: &str, sets: &[(String, String)], programs: impl FnOnce() + Send) -> RunResult {
    live_in(1, text, sets, programs)
}

/// The same, in several.
fn live_in(processes: usize, text: &str, sets: &[(String, String)], programs: impl FnOnce() + Send) -> RunResult {
    let sets: Vec<(&str, &str)> = sets.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let scenario = read(text, &sets);
    let live = |watch: Watch<'_>| run_processes(&scenario, processes, command, watch);
    live_while(programs, live).expect("it can be run")
}

const TWO: &str = r#"
live.wait = "sleep"
[fabric.star]
hosts = 4
rate = "1Gbps"
propagation = "2ms"
[measure]
end = "60s"
"#;

/// Two racks, whose hosts are on workers of their own.
const RACKS: &str = r#"
live.wait = "sleep"
live.workers = 2
[fabric.leaf_spine]
racks = 2
hosts_per_rack = 2
spines = 1
host_rate = "1Gbps"
spine_rate = "1Gbps"
propagation = "1ms"
[measure]
end = "60s"
"#;

#[test]
fn tcp_and_udp_cross_the_fabric_between_namespaces() {
    cross(TWO, "one", 1);
}

#[test]
fn they_do_so_over_datagrams() {
    cross(&format!("live.links = 'datagrams'\n{TWO}"), "datagrams", 1);
}

#[test]
fn they_do_so_between_workers() {
    cross(RACKS, "racks", 1);
}

#[test]
fn they_do_so_between_processes() {
    cross(RACKS, "processes", 2);
}

/// Each process opens the devices of its own hosts; what it can't open it says, and nothing has run.
#[test]
fn what_another_process_cannot_attach_is_said() {
    let scenario = read(RACKS, &[("live.attach.host3", "netns:no-such-namespace")]);
    let problem = run_processes(&scenario, 2, command, |_| false).expect_err("there is none").to_string();
    assert!(problem.contains("live.attach.host3: there is no network namespace \"no-such-namespace\""), "{problem}");
}

/// Bytes arrive as they were sent, and take as long as the links say.
#[expect(clippy::disallowed_methods, reason = "the real clock, by which programs live")]
fn cross(text: &str, test: &str, processes: usize) {
    let Some(spaces) = Namespaces::or_skip(2, test) else { return };
    let sets = [("live.attach.host0", &spaces.0[0]), ("live.attach.host3", &spaces.0[1])];
    let sets = sets.map(|(key, name)| (key.to_owned(), format!("netns:{name}")));
    let content: Vec<u8> = (0..3_000_000u32).map(|byte| (byte / 3) as u8).collect();
    let spaces = &spaces;
    let content = &content;
    let result = live_in(processes, text, &sets, || {
        std::thread::scope(|scope| {
            let (told, ready) = std::sync::mpsc::channel();
            scope.spawn(move || {
                spaces.enter(1);
                let (tcp, udp) = (TcpListener::bind((address(3), 5001)), UdpSocket::bind((address(3), 5002)));
                let (tcp, udp) = (tcp.expect("its own address"), udp.expect("its own address"));
                // Where a question never comes, the test ends, too.
                udp.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
                told.send(()).expect("somebody waits");
                let mut buffer = [0; 100];
                for _ in 0..5 {
                    let (count, from) = udp.recv_from(&mut buffer).expect("a datagram");
                    udp.send_to(&buffer[..count], from).expect("an answer");
                }
                let mut got = Vec::new();
                tcp.accept().expect("a connection").0.read_to_end(&mut got).expect("all of it");
                assert!(got == *content, "{} bytes came", got.len());
            });
            ready.recv().expect("it listens");
            spaces.enter(0);
            let udp = UdpSocket::bind((address(0), 0)).expect("its own address");
            udp.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
            for _ in 0..5 {
                let asked = Instant::now();
                udp.send_to(b"there?", (address(3), 5002)).expect("a question");
                udp.recv_from(&mut [0; 100]).expect("an answer");
                // Four links of 2 ms, or eight of 1 ms.
                assert!(asked.elapsed() >= Duration::from_millis(8), "{:?}", asked.elapsed());
            }
            let mut tcp = TcpStream::connect((address(3), 5001)).expect("a connection");
            tcp.write_all(content).expect("all of it");
        });
    });
    assert_eq!((result.info.ended, &result.info.digest[..4]), ("interrupted", "none"));
    assert_eq!((result.info.processes, result.info.lost_processes.len()), (processes, 0));
    for name in ["bytes conserved", "content right"] {
        assert!(finding(&result, name), "{:#?}", result.info.audit);
    }
    let (sent, received) =
        (column(&result.tables, "attached", "sent_bytes"), column(&result.tables, "attached", "received_bytes"));
    assert!(sent[0] > 3_000_000 && received[1] > 3_000_000, "{sent:?} {received:?}");
    let frames = column(&result.tables, "attached", "sent_frames")[0];
    assert!(frames * 2 < column(&result.tables, "attached", "sent_packets")[0], "the kernel leaves cutting to us");
}

/// A host that takes in 100 Mbps of a link of 1 Gbps: what the kernel gets comes no faster, and nothing is lost that
/// TCP does not send again.
#[test]
#[expect(clippy::disallowed_methods, reason = "the real clock, by which programs live")]
fn an_attached_host_takes_in_no_more_than_its_intake_rate() {
    let Some(spaces) = Namespaces::or_skip(2, "intake") else { return };
    let sets = [("live.attach.host0", &spaces.0[0]), ("live.attach.host3", &spaces.0[1])];
    let mut sets: Vec<_> = sets.map(|(key, name)| (key.to_owned(), format!("netns:{name}"))).into();
    sets.push(("host.intake_rate".to_owned(), "100Mbps".to_owned()));
    let content: Vec<u8> = (0..2_000_000u32).map(|byte| (byte / 7) as u8).collect();
    let (spaces, content) = (&spaces, &content);
    let result = live_with(TWO, &sets, || {
        std::thread::scope(|scope| {
            let (told, ready) = std::sync::mpsc::channel();
            let receiver = scope.spawn(move || {
                spaces.enter(1);
                let tcp = TcpListener::bind((address(3), 5001)).expect("its own address");
                told.send(()).expect("somebody waits");
                let mut got = Vec::new();
                let mut stream = tcp.accept().expect("a connection").0;
                let began = Instant::now();
                stream.read_to_end(&mut got).expect("all of it");
                (began.elapsed(), got)
            });
            ready.recv().expect("it listens");
            spaces.enter(0);
            let mut tcp = TcpStream::connect((address(3), 5001)).expect("a connection");
            tcp.write_all(content).expect("all of it");
            drop(tcp);
            let (took, got) = receiver.join().expect("it ends");
            assert!(got == *content, "{} bytes came", got.len());
            // 2 MB and their headers at 100 Mbps: 165 ms. At the link's rate it would be 17 ms.
            assert!(took > Duration::from_millis(160), "{took:?}");
        });
    });
    for name in ["bytes conserved", "content right"] {
        assert!(finding(&result, name), "{:#?}", result.info.audit);
    }
}

/// Four hosts of 40 Mbps on a switch: slow enough for any machine to keep up.
const SLOW: &str = r#"
live = { wait = "sleep", content = "none" }
measure = { end = "60s", interval = "0s" }
[fabric.star]
hosts = 4
rate = "40Mbps"
propagation = "100us"
"#;

/// So long TCP may take to find its rate, and so long it is measured.
const WARM_UP: Duration = Duration::from_secs(1);
const MEASURED: Duration = Duration::from_secs(3);

/// Mbps of content that TCP brings from each sender to the last host, by this many connections each, while it is
/// measured. Host n is in namespace n.
#[expect(clippy::disallowed_methods, reason = "the real clock, by which programs live")]
fn streams(spaces: &Namespaces, connections: &[usize]) -> Vec<f64> {
    let (last, ended, connected) = (spaces.0.len() - 1, AtomicBool::new(false), Barrier::new(connections.len()));
    let (told, ready) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let (ended, connected) = (&ended, &connected);
        let mut counts = Vec::new();
        for (sender, &many) in connections.iter().enumerate() {
            let at = (address(last as u8), 5_100 + sender as u16);
            let told = told.clone();
            counts.push(scope.spawn(move || {
                spaces.enter(last);
                let listener = TcpListener::bind(at).expect("its own address");
                set_socket_recv_buffer_size(&listener, WINDOW).expect("a socket can");
                told.send(()).expect("somebody waits");
                let streams: Vec<TcpStream> = (0..many).map(|_| listener.accept().expect("a connection").0).collect();
                streams.iter().for_each(|stream| stream.set_nonblocking(true).expect("a socket can"));
                connected.wait();
                let warm_up = Instant::now();
                while warm_up.elapsed() < WARM_UP {
                    take(&streams);
                }
                // All that came is taken by now and at the end, so a machine that is late measures longer, and no more.
                let (began, mut count) = (Instant::now(), 0);
                while began.elapsed() < MEASURED {
                    count += take(&streams);
                }
                let took = began.elapsed();
                ended.store(true, Ordering::SeqCst);
                count as f64 * 8e-6 / took.as_secs_f64()
            }));
        }
        connections.iter().for_each(|_| ready.recv().expect("it listens"));
        for (sender, &many) in connections.iter().enumerate() {
            for _ in 0..many {
                scope.spawn(move || {
                    spaces.enter(sender);
                    let at = (address(last as u8), 5_100 + sender as u16);
                    let mut stream = TcpStream::connect(at).expect("a connection");
                    let content = [0; 1 << 14];
                    // It may be closed before all is written.
                    while !ended.load(Ordering::SeqCst) && stream.write_all(&content).is_ok() {}
                });
            }
        }
        counts.into_iter().map(|count| count.join().expect("it counts")).collect()
    })
}

/// A connection's window is no larger, so that what link control holds back fits into the queue of the sender's device
/// (500 packets). What is dropped there is TCP's to send again, and a stream that waits for it gets much at once.
const WINDOW: usize = 32_000;

/// Bytes that have come by these streams since they were asked before, or within the next millisecond.
fn take(streams: &[TcpStream]) -> u64 {
    std::thread::sleep(Duration::from_millis(1));
    let mut buffer = [0; 1 << 14];
    let mut count = 0;
    for mut stream in streams {
        while let Ok(got @ 1..) = stream.read(&mut buffer) {
            count += got as u64;
        }
    }
    count
}

/// Lets TCP fill the link of the last of four attached hosts, and says how many Mbps each sender had; none if this
/// machine can't.
fn filled(test: &str, sets: &[(&str, &str)], connections: &[usize]) -> Option<(RunResult, Vec<f64>)> {
    let spaces = Namespaces::or_skip(connections.len() + 1, test)?;
    let attached = spaces.0.iter().enumerate().map(|(host, name)| (format!("live.attach.host{host}"), name));
    let mut all: Vec<_> = attached.map(|(key, name)| (key, format!("netns:{name}"))).collect();
    all.extend(sets.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())));
    let mut mbps = Vec::new();
    let result = live_with(SLOW, &all, || mbps = streams(&spaces, connections));
    for name in ["bytes conserved", "content right"] {
        assert!(finding(&result, name), "{:#?}", result.info.audit);
    }
    Some((result, mbps))
}

fn of_links(result: &RunResult, name: &str) -> u64 {
    column(&result.tables, "links", name).iter().sum()
}

/// Two tenants of the last host's link, with weights of 1 and 3; the first has three connections, the other one.
#[test]
fn the_kernels_tcp_obeys_augmented_queues() {
    let request = |weight: u32| {
        format!("request = [{{ share.weight = {weight}, link = [\"switch0\", \"host2\"], position = \"ingress\" }}]")
    };
    let entities = format!(
        "[{{ name = \"one\", hosts = \"0\", {} }}, {{ name = \"three\", hosts = \"1\", {} }}]",
        request(1),
        request(3)
    );
    let sets = [("sharing", "aq"), ("entity", entities.as_str())];
    let Some((result, mbps)) = filled("aq", &sets, &[3, 1]) else { return };
    let (one, three) = (mbps[0], mbps[1]);
    // 10 and 30 Mbps, of which a packet of 1,500 B carries 1,448 B; a drop halves, or lowers by 30%, what TCP has.
    assert!((6.0..10.0).contains(&one) && (20.0..29.5).contains(&three), "{one:.1} and {three:.1} Mbps");
    assert!((2.2..4.0).contains(&(three / one)), "{one:.1} and {three:.1} Mbps");
    let dropped = column(&result.tables, "aqs", "dropped_packets").iter().sum::<u64>();
    assert!(dropped > 0, "what is over its share is dropped by its AQ");
}

/// The senders' Mbps are those of a link of 40 Mbps, less headers. A machine that has too little time for the fabric
/// gives less, and the audit says that it was late.
fn assert_full(result: &RunResult, mbps: &[f64]) {
    let sum: f64 = mbps.iter().sum();
    assert!(sum < 39.0, "{sum:.1} Mbps");
    assert_if_in_time(result, sum > 37.0, &format!("over 37 Mbps: {sum:.1} Mbps"));
}

/// Connections from each of two senders that fill a buffer of 300 KB at any time. When a connection leaves slow start
/// is up to the kernel's clock, but the first windows, 10 packets of 1,500 B each, make 480 KB together.
const MANY: [usize; 2] = [16, 16];

/// The same buffer loses packets of TCP without PFC, and none with it.
#[test]
fn the_kernels_tcp_over_pfc_loses_nothing() {
    let buffer = ("switch.buffer.shared.bytes", "300KB");
    let Some((lossy, _)) = filled("lossy", &[buffer], &MANY) else { return };
    assert!(of_links(&lossy, "overflow_packets") > 0, "TCP fills the buffer");
    let Some((result, mbps)) = filled("pfc", &[buffer, ("flow_control", "pfc")], &MANY) else { return };
    assert_eq!(of_links(&result, "overflow_packets"), 0);
    assert!(of_links(&result, "pauses") > 0);
    assert_full(&result, &mbps);
}

/// Pyrrha holds back what passes a root, and that alone; nothing is lost.
#[test]
fn the_kernels_tcp_over_pyrrha_loses_nothing() {
    let sets = [("switch.buffer.shared.bytes", "1MB"), ("flow_control", "pyrrha")];
    let Some((result, mbps)) = filled("pyrrha", &sets, &MANY) else { return };
    assert_eq!(of_links(&result, "overflow_packets"), 0);
    assert!(of_links(&result, "pauses") > 0);
    assert!(finding(&result, "flows are held only by roots on their own onward path"), "{:#?}", result.info.audit);
    assert_full(&result, &mbps);
}

#[test]
fn what_cannot_be_attached_says_what_would_be_right() {
    for (set, says) in [
        ("live.attach.host9=tap0", "host9"),
        ("live.attach.switch0=tap0", "is a switch; what is attached is a host"),
        ("live.attach.host0=netns:", "neither a network device"),
        ("live.network=10.77.0.1/16", "with room for hosts behind its prefix"),
        ("live.network=10.77.0.0/30", "no room for addresses of 4 hosts"),
        ("host.mtu=1000B", "attached hosts need 1280 bytes"),
    ] {
        let (key, value) = set.split_once('=').expect("a pair");
        let mut sets = vec![("live.attach.host1".to_owned(), "no-such-device".to_owned())];
        sets.push((key.to_owned(), value.to_owned()));
        let error = match scenario::read(TWO, "test", &sets) {
            Err(error) => error.to_string(),
            Ok(read) => run(&read, |_| false).expect_err("nothing of that can be").to_string(),
        };
        assert!(error.contains(says), "{set}: {error}");
    }
    let error = run(&read(TWO, &[("live.attach.host1", "no-such-dev")]), |_| false).expect_err("there is none");
    assert!(error.to_string().contains(if cfg!(target_os = "linux") { "ip tuntap add" } else { "Linux" }), "{error}");
}
