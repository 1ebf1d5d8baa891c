//! Runs on several machines, which here are threads of this program, this program run again, or network namespaces.

use std::io::Write;
use std::net::{TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clearway_live::machines::{Joined, Membership, News, Token};
use clearway_live::{RunResult, join, run_machines};
use scenario::Scenario;
use units::Problem;

use crate::attach::Namespaces;
use crate::processes::alike;
use crate::run::{blocks, column, finding, read, sound};

const AT: &str = "CLEARWAY_TEST_JOIN";
const LISTEN: &str = "CLEARWAY_TEST_LISTEN";

/// Four racks, links of 1 ms by the machine's clock, an incast that a flow control holds back, and a flow that does not
/// end before the run does.
const RACKS: &str = r#"
flow_control = "pfc"
transport = "dctcp"
[live]
dilation = 500
wait = "sleep"
[fabric.leaf_spine]
racks = 4
hosts_per_rack = 2
spines = 2
propagation = "2us"
[switch.buffer.shared]
bytes = "4MB"
[measure]
end = "2ms"
interval = "100us"
[[traffic]]
sizes = { constant = "60KB" }
arrivals = "all_at_once"
pattern.incast.degree = 7
[[traffic]]
sizes = { constant = "10MB" }
arrivals = "all_at_once"
name = "last"
start = "1900us"
flows = 1
senders = "7"
receivers = "1"
"#;

fn token() -> Token {
    Token::new("a token of these tests").expect("long enough")
}

/// The first machine, and what is done once it listens, with its port and whether the network lives.
fn first(
    scenario: &Scenario,
    machines: usize,
    at: &str,
    others: impl FnOnce(u16, &AtomicBool) + Send,
) -> (Result<RunResult, Problem>, Vec<News>) {
    let token = token();
    let member = Membership { token: &token, build: "this" };
    let (lives, mut told) = (AtomicBool::new(false), Vec::new());
    let result = std::thread::scope(|scope| {
        let (mut others, lives) = (Some(others), &lives);
        let tell = |news: News| {
            if let News::Listening(at, _) = &news
                && let Some(others) = others.take()
            {
                let port = at.port();
                scope.spawn(move || others(port, lives));
            }
            told.push(news);
        };
        let watch = |at: run::Progress| {
            lives.fetch_or(at.now.ps() > 0, Ordering::SeqCst);
            false
        };
        run_machines(scenario, machines, at, &member, tell, watch)
    });
    (result, told)
}

fn joins(port: u16, scenario: Option<&Scenario>, token: &Token, build: &str) -> Result<Joined, Problem> {
    join(&format!("127.0.0.1:{port}"), scenario, &Membership { token, build }, |_| (), |_| false)
}

#[test]
fn the_history_is_the_simulators_on_any_number_of_machines() {
    for (machines, workers) in [(2, "1"), (3, "1"), (2, "2")] {
        let scenario = read(RACKS, &[("live.workers", workers)]);
        let (result, news) = first(&scenario, machines, "127.0.0.1:0", |port, _| {
            let scenario = &scenario;
            std::thread::scope(|scope| {
                for number in 1..machines {
                    scope.spawn(move || {
                        let own = (number == 1).then_some(scenario);
                        let joined = joins(port, own, &token(), "this").expect("it is let in");
                        assert_eq!((joined.machines, joined.end.ps()), (machines, 2_000_000_000));
                    });
                }
            });
        });
        let result = result.expect("it can be run");
        sound(&result);
        alike(&result, &sim::run(&scenario, 1, |_| false).expect("it can be simulated"));
        assert_eq!((result.info.machines, result.info.processes, result.info.ended), (machines, machines, "horizon"));
        assert!(result.info.clock_error_us > 0.0 && result.info.lost_processes.is_empty());
        assert_eq!(column(&result.tables, "machines", "sent_datagrams").len(), machines);
        assert!(column(&result.tables, "machines", "received_datagrams").iter().all(|&count| count > 0));
        assert_eq!(column(&result.tables, "machines", "nodes").iter().sum::<u64>(), 14);
        assert!(matches!(news.last(), Some(News::Part(0, ..))), "{news:?}");
    }
}

/// Each machine opens the device of its own host; what has been sent through both is in one table.
#[test]
fn attached_hosts_of_two_machines_reach_each_other() {
    let Some(spaces) = Namespaces::or_skip(2, "far") else { return };
    let names = [0, 1].map(|space| format!("netns:{}", spaces.0[space]));
    let more = [("live.attach.host0", &names[0][..]), ("live.attach.host7", &names[1]), ("measure.end", "4ms")];
    let scenario = read(RACKS, &more);
    let (result, _) = first(&scenario, 2, "127.0.0.1:0", |port, lives| {
        std::thread::scope(|scope| {
            scope.spawn(move || joins(port, None, &token(), "this").expect("it is let in"));
            while !lives.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(10));
            }
            let spaces = &spaces;
            scope.spawn(move || {
                spaces.enter(1);
                let udp = UdpSocket::bind("10.77.0.8:5002").expect("its own address");
                udp.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
                let mut buffer = [0; 100];
                for _ in 0..3 {
                    let (count, from) = udp.recv_from(&mut buffer).expect("a datagram");
                    udp.send_to(&buffer[..count], from).expect("an answer");
                }
            });
            spaces.enter(0);
            let udp = UdpSocket::bind("10.77.0.1:0").expect("its own address");
            udp.set_read_timeout(Some(Duration::from_millis(300))).expect("a timeout");
            let mut answers = 0;
            // The other may not listen yet.
            for _ in 0..10 {
                udp.send_to(b"there?", "10.77.0.8:5002").expect("a question");
                answers += usize::from(udp.recv_from(&mut [0; 100]).is_ok());
                if answers == 3 {
                    break;
                }
            }
            assert_eq!(answers, 3);
        });
    });
    let result = result.expect("it can be run");
    assert_eq!((result.info.ended, result.info.machines, &result.info.digest[..4]), ("horizon", 2, "none"));
    assert_eq!(column(&result.tables, "attached", "received_packets").iter().filter(|&&count| count >= 3).count(), 2);
}

/// Each machine captures what its nodes send, and what is lost at them, in a file of its own: one that joins, in its
/// current folder, whatever folder the first machine names.
#[test]
fn machines_capture_what_is_theirs() {
    let folder = std::env::temp_dir().join(format!("clearway-machines-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let name = format!("spine-{}", std::process::id());
    let (first_file, other_file) = (folder.join(format!("{name}.pcapng")), Path::new(&name).with_extension("1.pcapng"));
    let scenario = read(RACKS, &[("live.capture.spine0", first_file.display().to_string().as_str())]);
    let (result, _) = first(&scenario, 2, "127.0.0.1:0", |port, _| {
        joins(port, None, &token(), "this").expect("it is let in");
    });
    sound(&result.expect("it can be run"));
    let written = [&first_file, &other_file].map(|path| std::fs::read(path).expect("the file"));
    std::fs::remove_dir_all(&folder).expect("it is ours");
    std::fs::remove_file(&other_file).expect("it is ours");
    let [one, other] = [blocks(&written[0]), blocks(&written[1])];
    // A section and eight interfaces, both ways of four links; then packets.
    let kind = |block: &[u8]| u32::from_le_bytes(block[..4].try_into().expect("four bytes"));
    let packets = |of: &[&[u8]]| of.iter().filter(|block| kind(block) == 6).count();
    assert!(packets(&one) > 50 && packets(&other) > 50, "{} and {}", packets(&one), packets(&other));
    let plan = ::run::Plan::new(&read(RACKS, &[])).expect("a plan");
    let places = std::collections::BTreeMap::from([("spine0".to_owned(), "spine.pcapng".to_owned())]);
    let links = sim::Capturing::new(&plan, sim::capture::wanted(&plan, &places, "pcap").expect("it is there"), 1 << 24);
    sim::run_captured(&plan, sim::Execution { threads: 1, parts: None }, Some(&links), |_| false);
    let content = links.contents(&plan).expect("the default network").remove(0);
    let simulated = blocks(&content.blocks);
    assert_eq!(packets(&one) + packets(&other), packets(&simulated));
    let begin = simulated.len() - packets(&simulated);
    assert_eq!((one.len() - packets(&one), other.len() - packets(&other)), (begin, begin));
}

/// Nothing of this stops the others, and all of it is said or counted.
#[test]
fn strangers_are_not_let_in_and_what_they_send_is_counted() {
    let scenario = read(RACKS, &[]);
    // The same number for TCP and UDP is to be had where one is named.
    let free = UdpSocket::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("loopback is there");
    let (result, news) = first(&scenario, 2, &free.to_string(), |port, _| {
        let other = Token::new("another token of these").expect("long enough");
        let problem = joins(port, None, &other, "this").expect_err("it is not let in").to_string();
        assert!(problem.contains("does not take this token"), "{problem}");
        let mut web = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        web.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("it is read");
        let silent = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        let stranger = UdpSocket::bind("127.0.0.1:0").expect("loopback is there");
        for datagram in [&b"CLTK"[..], &[7; 100], &[0; 1_472]] {
            stranger.send_to(datagram, ("127.0.0.1", port)).expect("it is sent");
        }
        joins(port, None, &token(), "this").expect("it is let in");
        drop((web, silent));
    });
    let result = result.expect("it can be run");
    sound(&result);
    alike(&result, &sim::run(&scenario, 1, |_| false).expect("it can be simulated"));
    assert_eq!(result.info.refused_datagrams, 3);
    let denied = |what: &str| news.iter().any(|news| matches!(news, News::Denied(_, why) if why.contains(what)));
    assert!(denied("its token is another one") && denied("does not speak"), "{news:?}");
}

#[test]
fn another_build_or_scenario_is_said_on_both_sides_before_anything_is_done() {
    let scenario = read(RACKS, &[]);
    let other = read(RACKS, &[("seed", "77")]);
    for (build, own, said) in [("that", None, "builds differ"), ("this", Some(&other), "scenarios differ")] {
        let (result, _) = first(&scenario, 3, "127.0.0.1:0", |port, _| {
            std::thread::scope(|scope| {
                let waits = scope.spawn(move || joins(port, None, &token(), "this"));
                // Whoever comes after the run has failed would wait for another.
                std::thread::sleep(Duration::from_secs(1));
                let problem = joins(port, own, &token(), build).expect_err("it can't take part").to_string();
                assert!(problem.contains(said), "{problem}");
                let problem = waits.join().expect("no panic").expect_err("nor can this one").to_string();
                assert!(problem.contains(said), "{problem}");
            });
        });
        let problem = result.expect_err("it can't be run").to_string();
        assert!(problem.contains(said) && problem.contains("127.0.0.1"), "{problem}");
    }
}

#[test]
fn what_cannot_be_shared_is_refused() {
    let (token, star) =
        (token(), read("fabric.star = {}\n[[traffic]]\nsizes.constant = '1KB'\narrivals = 'all_at_once'\n", &[]));
    let member = Membership { token: &token, build: "this" };
    let said = |scenario: &Scenario, machines, at: &str| {
        let run = run_machines(scenario, machines, at, &member, |_| (), |_| true);
        run.expect_err("it can't be run").to_string()
    };
    let racks = read(RACKS, &[]);
    let one = said(&star, 2, "127.0.0.1:0");
    assert!(one.contains("for one machine"), "{one}");
    assert!(said(&racks, 1, "127.0.0.1:0").contains("2 to "));
    assert!(said(&racks, 65, "127.0.0.1:0").contains("65 machines can't share"));
    assert!(said(&racks, 2, "nowhere").contains("can't listen at nowhere"));
    assert!(said(&racks, 2, "127.0.0.1:0").contains("interrupted while 1 of 2 machines"));
    let datagrams = read(RACKS, &[("live.links", "datagrams"), ("live.workers", "1")]);
    assert!(said(&datagrams, 2, "127.0.0.1:0").contains("one process reads all sockets"));
    let problem = join("127.0.0.1", None, &member, |_| (), |_| false).expect_err("no port").to_string();
    assert!(problem.contains("HOST:PORT"), "{problem}");
    let problem = join("127.0.0.1:1", None, &member, |_| (), |_| true).expect_err("nobody").to_string();
    assert!(problem.contains("interrupted"), "{problem}");
}

#[test]
#[ignore = "what the other machines of tests run"]
fn part() {
    if let Ok(at) = std::env::var(AT) {
        let token = token();
        let member = Membership { token: &token, build: "this" };
        match join(&at, None, &member, |_| (), |_| false) {
            Ok(joined) => println!("took part as {joined:?}"),
            Err(problem) => println!("did not: {problem}"),
        }
    }
}

#[test]
#[ignore = "what the first machine of a test runs"]
fn listens() {
    if let Ok(at) = std::env::var(LISTEN) {
        let (token, scenario) =
            (token(), read(RACKS, &[("live.dilation", "9000"), ("measure.end", "20ms"), ("traffic.1.start", "19ms")]));
        let member = Membership { token: &token, build: "this" };
        let result = run_machines(&scenario, 2, &at, &member, |_| (), |_| false);
        panic!("it is killed before {:?}", result.map(|result| result.info));
    }
}

/// If the first machine ends, so do all others.
#[test]
fn without_the_first_machine_there_is_no_run() {
    let free = UdpSocket::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("loopback is there");
    let mut command = Command::new(std::env::current_exe().expect("this is a program"));
    command.args(["--exact", "machines::listens", "--ignored"]).env(LISTEN, free.to_string());
    let mut listens = command.stdout(Stdio::null()).spawn().expect("it can be started");
    let token = token();
    let member = Membership { token: &token, build: "this" };
    let mut waited = Vec::new();
    // Nobody may listen there yet; when the network lives, the first machine is killed.
    let watch = |at: run::Progress| {
        if at.now.ps() > 0 {
            listens.kill().expect("it can be");
        }
        false
    };
    let problem = join(&free.to_string(), None, &member, |news| waited.push(news), watch).expect_err("it has ended");
    assert!(problem.to_string().contains("the first machine has ended"), "{problem}");
    assert!(matches!(waited.last(), Some(News::Part(1, 2, _))), "{waited:?}");
    listens.wait().expect("it ends");
}

/// This program as another machine, perhaps by way of another program.
fn machine(through: &[&str], at: &str) -> Child {
    let program = std::env::current_exe().expect("this is a program");
    let words = ["--exact", "machines::part", "--ignored", "--nocapture"];
    let mut command = match through.split_first() {
        Some((through, arguments)) => {
            let mut command = Command::new(through);
            command.args(arguments).arg(program);
            command
        }
        None => Command::new(program),
    };
    command.args(words).env(AT, at).stdout(Stdio::piped()).spawn().expect("it can be started")
}

#[test]
fn a_machine_that_is_killed_is_a_failure_of_its_nodes() {
    // 3 s by the machine's clock.
    let more = [("live.dilation", "600"), ("measure.end", "5ms"), ("traffic.1.start", "4900us")];
    let scenario = read(RACKS, &more);
    let (result, _) = first(&scenario, 3, "127.0.0.1:0", |port, lives| {
        let at = format!("127.0.0.1:{port}");
        let (mut victim, other) = (machine(&[], &at), machine(&[], &at));
        while !lives.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(300));
        victim.kill().expect("it can be");
        victim.wait().expect("it ends");
        let output = other.wait_with_output().expect("it ends");
        assert!(String::from_utf8_lossy(&output.stdout).contains("took part as"), "{output:?}");
    });
    let result = result.expect("it can be run");
    assert!(finding(&result, "content right"), "{:#?}", result.info.audit);
    assert_eq!((result.info.lost_processes.len(), result.info.machines), (1, 2));
    let lost = result.info.audit.iter().find(|finding| finding.name == "all machines lived").expect("it was lost");
    assert!(!lost.ok && lost.detail.contains("machine "), "{}", lost.detail);
    assert_eq!((result.info.ended, result.info.end_ps), ("horizon", 5_000_000_000));
}

#[test]
fn all_end_with_what_there_is_when_the_first_is_told_to() {
    let scenario = read(RACKS, &[("live.dilation", "1000"), ("measure.end", "20ms"), ("traffic.1.start", "19ms")]);
    let token = token();
    let member = Membership { token: &token, build: "this" };
    let mut looks = 0;
    let mut other = None;
    let tell = |news: News| {
        if let News::Listening(at, _) = news {
            other = Some(machine(&[], &at.to_string()));
        }
    };
    // It is told while it runs.
    let watch = |at: run::Progress| {
        looks += u32::from(at.now.ps() > 0);
        looks > 5
    };
    let result = run_machines(&scenario, 2, "127.0.0.1:0", &member, tell, watch).expect("it can be run");
    sound(&result);
    assert_eq!((result.info.ended, result.info.machines), ("interrupted", 2));
    let output = other.expect("it was started").wait_with_output().expect("it ends");
    assert!(String::from_utf8_lossy(&output.stdout).contains("took part as"), "{output:?}");
}

fn ip(words: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(words).output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() { Ok(()) } else { Err(format!("ip {}: {said}", words.join(" "))) }
}

/// Two namespaces with a pair of virtual Ethernet devices between them.
fn two_machines() -> Result<Namespaces, String> {
    let made = Namespaces::new(2, "machines")?;
    let [one, other] = [&made.0[0], &made.0[1]];
    ip(&["-n", one, "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", other])?;
    for (name, address) in [(one, "10.99.0.1/24"), (other, "10.99.0.2/24")] {
        ip(&["-n", name, "addr", "add", address, "dev", "wire"])?;
        ip(&["-n", name, "link", "set", "wire", "up"])?;
    }
    Ok(made)
}

/// Namespaces stand for machines, with a wire that loses one packet in a hundred, if the system has such wires.
#[test]
fn two_namespaces_are_two_machines() {
    let namespaces = match two_machines() {
        Ok(made) => made,
        Err(why) => {
            // By the stream itself: what a test that passes prints is not shown.
            let _ = writeln!(std::io::stderr(), "skipped, namespaces as machines: {why}");
            return;
        }
    };
    let lossy = ["netns", "exec", &namespaces.0[1], "tc", "qdisc", "add", "dev", "wire", "root", "netem", "loss", "1%"];
    if let Err(why) = ip(&lossy) {
        let _ = writeln!(std::io::stderr(), "not tried, losses between namespaces: {why}");
    }
    let scenario = read(RACKS, &[]);
    let result = std::thread::scope(|scope| {
        let lives = scope.spawn(|| {
            namespaces.enter(0);
            let other = &namespaces.0[1];
            first(&scenario, 2, "10.99.0.1:7770", |_, _| {
                let output = machine(&["ip", "netns", "exec", other], "10.99.0.1:7770").wait_with_output();
                let output = output.expect("it ends");
                assert!(String::from_utf8_lossy(&output.stdout).contains("took part as"), "{output:?}");
            })
        });
        lives.join().expect("no panic").0.expect("it can be run")
    });
    sound(&result);
    alike(&result, &sim::run(&scenario, 1, |_| false).expect("it can be simulated"));
    assert_eq!((result.info.machines, result.info.ended), (2, "horizon"));
}
