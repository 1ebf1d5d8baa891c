//! Programs that join a Maze in several processes: messages go between hosts of all of them, and a process that ends is
//! a failure of its hosts alone.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use clearway_live::RunResult;
use clearway_live::maze::{MazeError, Remote, Socket, serve_processes};

use crate::joined::{content, path_of};
use crate::processes::command;
use crate::run::{Watch, column, finding, live_while, read, sound};

/// Longer than any machine takes.
const LIMIT: Option<Duration> = Some(Duration::from_secs(60));

/// Three racks of two hosts each.
const RACKS: &str = r#"
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

/// A message there and one back, of each of these lengths.
fn talk(client: &Socket, server: &Socket, lengths: &[usize]) {
    for (seed, &bytes) in (u64::from(client.address().host.0) << 8..).zip(lengths) {
        let said = content(seed, bytes);
        let sent = client.send(server.address(), Some("rpc"), &said).unwrap();
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
                    let talks = scope.spawn(move || talk(&client, &server, &[0, 1, 1_453, 20_001, 300_000]));
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
        assert_eq!((result.info.processes, result.info.flows, result.info.flows_completed), (processes, 50, 50));
        for (name, sum) in [("sent_messages", 50), ("received_messages", 50), ("sockets", 10), ("refused", 0)] {
            assert_eq!(column(&result.tables, "clients", name).iter().sum::<u64>(), sum, "{name}");
        }
        let mut bytes = column(&result.tables, "flows", "bytes").to_vec();
        bytes.sort_unstable();
        let expected = [0u64, 1, 1_453, 20_001, 300_000].into_iter().flat_map(|bytes| [bytes + 8; 10]);
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
        talk(&first, &lost, &[1_000]);
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
        talk(&second, &living, &[0, 100_000]);
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
        talk(&maze.socket("host0", None).unwrap(), &maze.socket("host1", Some(7)).unwrap(), &[1_000]);
    });
    sound(&result);
    assert_eq!((result.info.processes, result.info.flows_completed), (1, 2));
}

#[test]
fn a_path_that_is_taken_is_said() {
    let path = path_of("between-taken");
    std::fs::write(&path, "mine").unwrap();
    let taken = serve_processes(&read(RACKS, &[]), &path, 2, command, |_| true).expect_err("it is a file").to_string();
    assert!(taken.starts_with("sockets: ") && taken.contains("is no socket"), "{taken}");
    std::fs::remove_file(path).unwrap();
}
