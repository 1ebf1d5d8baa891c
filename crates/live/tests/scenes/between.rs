//! Programs that join a Maze in several processes, or on several machines: messages go between hosts of all of them,
//! and one that ends is a failure of its hosts alone. Machines are threads of this program here.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clearway_live::machines::{Membership, News, Token};
use clearway_live::maze::{MazeError, Remote, Socket, serve_machines, serve_processes};
use clearway_live::{RunResult, join};
use scenario::Scenario;
use units::Problem;

use crate::joined::{content, path_of};
use crate::processes::command;
use crate::run::{Watch, column, finding, live_while, read, sound};

/// Longer than any machine takes.
const LIMIT: Option<Duration> = Some(Duration::from_secs(60));

/// Three racks of two hosts each.
const RACKS: &str = r#"
timing = "ideal"
live = { wait = "sleep", dilation = 20, sockets.rpc = {} }
measure.interval = "0s"
[fabric.leaf_spine]
racks = 3
hosts_per_rack = 2
spines = 2
host_rate = "1Gbps"
spine_rate = "1Gbps"
"#;

/// Lets a scenario live in so many processes while `programs` join it.
fn live_between(
    test: &str,
    sets: &[(&str, &str)],
    processes: usize,
    command: impl FnMut() -> Command,
    programs: impl FnOnce(&Path) + Send,
) -> RunResult {
    let path = path_of(test);
    let live = |watch: Watch<'_>| serve_processes(&read(RACKS, sets), &path, processes, command, watch);
    let result = live_while(|| programs(&path), live);
    assert!(!path.exists(), "the socket is removed");
    result.unwrap_or_else(|problem| panic!("{problem}"))
}

/// A message there, of this class, and one back, of each of these lengths.
fn talk(client: &Socket, server: &Socket, class: Option<&str>, lengths: &[usize]) {
    for (seed, &bytes) in (u64::from(client.address().host.0) << 8..).zip(lengths) {
        let said = content(seed, bytes);
        let sent = client.send(server.address(), class, &said).unwrap();
        let times = sent.wait(LIMIT).unwrap();
        let came = server.receive(LIMIT).unwrap();
        assert!(came.content == said && came.from == client.address(), "{bytes} bytes");
        assert!(times.started < times.delivered && times.delivered == came.delivered);
        let back = server.send(came.from, None, &content(seed + 100, bytes)).unwrap();
        assert!(back.wait(LIMIT).unwrap().delivered >= times.delivered);
        assert!(client.receive(LIMIT).unwrap().content == content(seed + 100, bytes));
    }
}

#[test]
fn messages_go_between_hosts_of_all_processes() {
    for (transport, processes, workers) in [("dctcp", 2, "1"), ("harmony", 3, "1"), ("dcpim", 3, "1"), ("ndp", 2, "2")]
    {
        // A long time of a network over dcPIM, which matches all the time, is much work.
        let lengths: &[usize] = if transport == "dcpim" { &[0, 1_453] } else { &[0, 1, 1_453, 20_001, 300_000] };
        let messages = 10 * lengths.len() as u64;
        // Harmony keeps its promises where nothing is lost.
        let lossy = "[{ at = '0s', link = ['leaf0', 'spine0'], loss = 0.01 }]";
        let failure = if transport == "harmony" { "[]" } else { lossy };
        let sets = [("live.sockets.rpc.transport", transport), ("live.workers", workers), ("failure", failure)];
        let result = live_between(&format!("between-{transport}"), &sets, processes, command, |path| {
            let (one, other) = (Remote::connect(path).unwrap(), Remote::connect(path).unwrap());
            std::thread::scope(|scope| {
                // Within a process and between any two, of two programs at once.
                for (number, (from, to)) in [(0, 1), (0, 3), (2, 5), (4, 1), (5, 4)].into_iter().enumerate() {
                    let client = one.socket(&format!("host{from}"), None).unwrap();
                    let server = other.socket(&format!("host{to}"), Some(7 + number as u16)).unwrap();
                    let talks = scope.spawn(move || talk(&client, &server, Some("rpc"), lengths));
                    // Harmony rejects what has to wait for others.
                    if transport == "harmony" {
                        talks.join().unwrap();
                    }
                }
            });
            assert_eq!((one.settle(LIMIT.unwrap()), other.settle(LIMIT.unwrap())), (0, 0));
        });
        sound(&result);
        assert!(finding(&result, "content right") && result.info.digest.starts_with("none"));
        assert_eq!(
            (result.info.processes, result.info.flows, result.info.flows_completed),
            (processes, messages, messages)
        );
        for (name, sum) in
            [("sent_messages", messages), ("received_messages", messages), ("sockets", 10), ("refused", 0)]
        {
            assert_eq!(column(&result.tables, "clients", name).iter().sum::<u64>(), sum, "{name}");
        }
        let mut bytes = column(&result.tables, "flows", "bytes").to_vec();
        bytes.sort_unstable();
        let expected = lengths.iter().flat_map(|&bytes| [bytes as u64 + 8; 10]);
        assert!(bytes.into_iter().eq(expected));
    }
}

/// Whoever waits for a time of the network at a host of another process gets all that was delivered before.
#[test]
fn by_a_time_of_the_network_all_has_come_from_other_processes() {
    let result = live_between("between-until", &[], 3, command, |path| {
        let (one, other) = (Remote::connect(path).unwrap(), Remote::connect(path).unwrap());
        let (client, server) = (one.socket("host2", None).unwrap(), other.socket("host5", Some(7)).unwrap());
        // The network may be behind its clock: the first that come may have been delivered before that.
        let (mut until, mut came) = (other.now().unwrap(), Vec::new());
        (0..50).for_each(|seed| _ = client.send(server.address(), None, &content(seed, 3_000)).unwrap());
        while came.len() < 50 {
            let from = if came.is_empty() { units::Time::ZERO } else { until };
            until += units::Duration::from_us(500);
            while let Some(message) = server.receive_until(until, LIMIT).unwrap() {
                assert!((from..until).contains(&message.delivered), "{from} to {until}: {}", message.delivered);
                came.push(message.flow);
            }
            assert!(one.now().unwrap() >= until);
        }
        assert_eq!(server.receive_until(until, LIMIT).unwrap(), None, "it is told again");
    });
    sound(&result);
    assert_eq!(result.info.flows_completed, 50);
}

/// Kills the process that has written its number there.
fn kill(path: &Path) {
    let pid = std::fs::read_to_string(path).expect("it has begun");
    let killed = Command::new("kill").args(["-9", pid.trim()]).status().expect("there is such a program");
    assert!(killed.success());
    std::fs::remove_file(path).expect("it is there");
}

/// Messages from and to its hosts fail, and so do sockets there; all others go on, and nobody's room is lost.
#[test]
fn a_process_that_is_killed_takes_its_messages_with_it() {
    let pid = path_of("between-pid");
    let mut begun = 0;
    let command = || {
        begun += 1;
        let plain = command();
        let mut victim = Command::new("sh");
        // It is the second of the two that ends.
        let script = if begun == 2 { "echo $$ >\"$P\"; exec \"$0\" \"$@\"" } else { "exec \"$0\" \"$@\"" };
        victim.args(["-c", script]).arg(plain.get_program()).args(plain.get_args()).env("P", &pid);
        plain.get_envs().for_each(|(name, value)| _ = victim.env(name, value.expect("it is set")));
        victim
    };
    let undelivered = |sent: Result<clearway_live::maze::Times, MazeError>, host: &str| match sent {
        Err(MazeError::Undelivered(why)) => assert!(why.contains(&format!("{host} is lost with process 2")), "{why}"),
        other => panic!("{other:?}"),
    };
    let sets = [("live.sockets.rpc.transport", "dctcp")];
    let result = live_between("between-killed", &sets, 3, command, |path| {
        let (one, other) = (Remote::connect(path).unwrap(), Remote::connect(path).unwrap());
        let [first, second] = ["host0", "host2"].map(|host| one.socket(host, None).unwrap());
        let [living, lost] = ["host1", "host5"].map(|host| other.socket(host, Some(7)).unwrap());
        talk(&first, &lost, None, &[1_000]);
        let large = content(1, 20 << 20);
        let to = [&first, &second].map(|socket| socket.send(lost.address(), None, &large).unwrap());
        let from = lost.send(living.address(), None, &large).unwrap();
        kill(&pid);
        to.iter().for_each(|sent| undelivered(sent.wait(LIMIT), "host5"));
        undelivered(from.wait(LIMIT), "host5");
        undelivered(first.send(lost.address(), None, b"late").unwrap().wait(LIMIT), "host5");
        undelivered(lost.send(living.address(), None, b"late").unwrap().wait(LIMIT), "host5");
        let wrong = other.socket("host4", None).expect_err("it is lost").to_string();
        assert!(wrong.contains("host4 is lost with process 2 of the run: it has ended; open"), "{wrong}");
        let until = one.now().unwrap() + units::Duration::from_us(500);
        assert_eq!(lost.receive_until(until, LIMIT).unwrap(), None, "nothing can come");
        talk(&second, &living, None, &[0, 100_000]);
        // The room of what was under way is there again as soon as their workers know.
        let most = content(2, 64 << 20);
        let room = || first.send(lost.address(), None, &most).is_ok();
        assert!((0..1_000).any(|_| room() || {
            std::thread::sleep(Duration::from_millis(10));
            false
        }));
        assert_eq!((one.settle(LIMIT.unwrap()), other.settle(LIMIT.unwrap())), (0, 0));
    });
    assert!(finding(&result, "content right") && finding(&result, "reported once"), "{:#?}", result.info.audit);
    assert_eq!((result.info.lost_processes.as_slice(), result.info.processes), (&[2][..], 2));
    let lost = result.info.audit.iter().find(|finding| finding.name == "all processes lived").expect("it was lost");
    assert!(!lost.ok && lost.detail.contains("host4, host5"), "{}", lost.detail);
    assert!(result.info.warnings.iter().any(|warning| warning == "process 2: it has ended"));
}

/// With one rack there is nothing to share out: the run is of one process, and programs talk all the same.
#[test]
fn a_fabric_of_one_part_is_one_process() {
    let sets = [("fabric.leaf_spine.racks", "1"), ("fabric.leaf_spine.spines", "1")];
    let result = live_between("between-one", &sets, 2, command, |path| {
        let maze = Remote::connect(path).unwrap();
        talk(&maze.socket("host0", None).unwrap(), &maze.socket("host1", Some(7)).unwrap(), None, &[1_000]);
    });
    sound(&result);
    assert_eq!((result.info.processes, result.info.flows_completed), (1, 2));
}

/// It is said before anything is started, or waited for.
#[test]
fn a_path_where_no_socket_can_be_is_said() {
    let path = path_of("between-taken");
    std::fs::write(&path, "mine").unwrap();
    let nobody = || -> Command { panic!("nothing is started") };
    let token = token();
    let member = Membership { token: &token, build: "this" };
    let told = |news: News| panic!("{news}");
    let scenario = read(RACKS, &[]);
    for (path, why) in
        [(path.clone(), "is no socket"), (path.with_extension("none").join("a.socket"), "no such folder")]
    {
        let said = [
            serve_processes(&scenario, &path, 2, nobody, |_| true),
            serve_machines(&scenario, &path, 2, "127.0.0.1:0", &member, told, |_| true),
        ];
        for problem in said {
            let problem = problem.expect_err("it can't be").to_string();
            assert!(problem.starts_with("sockets: ") && problem.contains(why), "{problem}");
        }
    }
    std::fs::remove_file(path).unwrap();
}

fn token() -> Token {
    Token::new("a token of these tests").expect("long enough")
}

/// Lets a scenario live on several machines while `programs` join the first of them. `join` is what another machine
/// does, by the address to join.
fn live_on(
    test: &str,
    scenario: &Scenario,
    machines: usize,
    join: impl Fn(usize, &str) + Sync,
    programs: impl FnOnce(&Path) + Send,
) -> RunResult {
    let (path, token) = (path_of(test), token());
    let member = Membership { token: &token, build: "this" };
    let result = std::thread::scope(|scope| {
        let join = &join;
        let tell = |news: News| {
            if let News::Listening(at, _) = news {
                for number in 1..machines {
                    scope.spawn(move || join(number, &at.to_string()));
                }
            }
        };
        let live = |watch: Watch<'_>| serve_machines(scenario, &path, machines, "127.0.0.1:0", &member, tell, watch);
        live_while(|| programs(&path), live)
    });
    assert!(!path.exists(), "the socket is removed");
    result.unwrap_or_else(|problem| panic!("{problem}"))
}

/// Another machine takes part until `leaves` is true.
fn take_part(at: &str, own: Option<&Scenario>, leaves: &AtomicBool) -> Result<(), Problem> {
    let token = token();
    let member = Membership { token: &token, build: "this" };
    join(at, own, &member, |_| (), |_| leaves.load(Ordering::SeqCst)).map(drop)
}

/// Slow enough for the trunks of one machine.
const SLOW: (&str, &str) = ("live.dilation", "200");

#[test]
fn messages_go_between_hosts_of_all_machines() {
    for (transport, machines) in [("dctcp", 2), ("dcpim", 3)] {
        // Without live.sockets there is a class all the same, and another machine may be given the same scenario.
        let mut scenario = read(RACKS, &[SLOW, ("transport", transport)]);
        scenario.live.sockets.clear();
        let other = |number: usize, at: &str| {
            let own = (number == 1).then_some(&scenario);
            take_part(at, own, &AtomicBool::new(false)).expect("it is let in");
        };
        let result = live_on(&format!("machines-{transport}"), &scenario, machines, other, |path| {
            let (one, other) = (Remote::connect(path).unwrap(), Remote::connect(path).unwrap());
            assert_eq!(one.classes().collect::<Vec<_>>(), [("socket", transport)]);
            std::thread::scope(|scope| {
                for (number, (from, to)) in [(0, 1), (0, 3), (2, 5), (4, 1), (5, 4)].into_iter().enumerate() {
                    let client = one.socket(&format!("host{from}"), None).unwrap();
                    let server = other.socket(&format!("host{to}"), Some(7 + number as u16)).unwrap();
                    scope.spawn(move || talk(&client, &server, None, &[0, 1_453, 100_000]));
                }
            });
            let (client, server) = (one.socket("host2", None).unwrap(), other.socket("host5", Some(99)).unwrap());
            client.send(server.address(), None, b"before").unwrap().wait(LIMIT).unwrap();
            let until = one.now().unwrap() + units::Duration::from_us(200);
            assert_eq!(server.receive_until(until, LIMIT).unwrap().expect("it has come").content, b"before");
            assert_eq!(server.receive_until(until, LIMIT).unwrap(), None);
            assert_eq!((one.settle(LIMIT.unwrap()), other.settle(LIMIT.unwrap())), (0, 0));
        });
        sound(&result);
        assert!(finding(&result, "content right") && result.info.digest.starts_with("none"));
        assert_eq!((result.info.machines, result.info.flows, result.info.flows_completed), (machines, 31, 31));
        let mut bytes = column(&result.tables, "flows", "bytes").to_vec();
        bytes.sort_unstable();
        let expected = [0u64, 1_453, 100_000].into_iter().flat_map(|bytes| [bytes + 8; 10]);
        assert!(bytes.into_iter().eq([8; 10].into_iter().chain([14]).chain(expected.skip(10))));
        assert_eq!(column(&result.tables, "clients", "sent_messages").iter().sum::<u64>(), 31);
    }
}

/// Messages from and to its hosts fail, and so do sockets there; all others go on.
#[test]
fn a_machine_that_leaves_takes_its_messages_with_it() {
    let leaves = AtomicBool::new(false);
    let stays = AtomicBool::new(false);
    let scenario = read(RACKS, &[SLOW, ("live.sockets.rpc.transport", "dctcp")]);
    // The first that joins is machine 1; which of the two that is is not known before.
    let first_joined = AtomicBool::new(false);
    let other = |_: usize, at: &str| match first_joined.swap(true, Ordering::SeqCst) {
        false => assert!(take_part(at, None, &leaves).unwrap_err().to_string().contains("interrupted")),
        true => take_part(at, None, &stays).expect("it stays"),
    };
    let result = live_on("machines-leaves", &scenario, 3, other, |path| {
        let (one, other) = (Remote::connect(path).unwrap(), Remote::connect(path).unwrap());
        let here = one.socket("host0", None).unwrap();
        let there = [2, 4].map(|host| other.socket(&format!("host{host}"), Some(7)).unwrap());
        there.iter().for_each(|there| talk(&here, there, None, &[1_000]));
        let large = content(1, 20 << 20);
        let sent = there.each_ref().map(|there| here.send(there.address(), None, &large).unwrap());
        leaves.store(true, Ordering::SeqCst);
        // One of the two is lost.
        let lost = loop {
            let state = |sent: &clearway_live::maze::Sent| match sent.wait(Some(Duration::from_millis(50))) {
                Err(MazeError::Undelivered(why)) => Some(why),
                Err(MazeError::Late(_)) => None,
                other => panic!("{other:?}"),
            };
            if let Some(lost) = sent.iter().position(|sent| state(sent).is_some()) {
                break lost;
            }
        };
        let name = format!("host{} is lost with machine", 2 + 2 * lost);
        let late = here.send(there[lost].address(), None, b"late").unwrap().wait(LIMIT).unwrap_err().to_string();
        assert!(late.contains(&name) && late.contains("it has ended"), "{late}");
        let wrong = other.socket(&format!("host{}", 3 + 2 * lost), None).expect_err("it is lost").to_string();
        assert!(wrong.contains("open the socket at another host"), "{wrong}");
        talk(&here, &there[1 - lost], None, &[0, 1_000]);
    });
    assert!(finding(&result, "content right"), "{:#?}", result.info.audit);
    assert_eq!((result.info.lost_processes.len(), result.info.machines), (1, 2));
    assert!(
        result.info.warnings.iter().any(|warning| warning.ends_with(": it has ended")),
        "{:?}",
        result.info.warnings
    );
}
