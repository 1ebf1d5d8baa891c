//! The command line of `clearway-aq`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use crate::from_scenario;
use crate::grants::{Grants, Senders};
use crate::simulate::{predict, scenario as scenario_of};
use crate::tenants::{Tenants, read};

/// Exit status of a command that could not do what it should; clap has 2 for wrong arguments.
const FAILED: u8 = 1;

/// Augmented Queue in a Linux kernel: bandwidth for tenants of a network device.
#[derive(Debug, Parser)]
#[command(name = "clearway-aq", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// The BPF file system in which maps and links are pinned.
    #[arg(long, global = true, value_name = "DIR", default_value = "/sys/fs/bpf")]
    pins: PathBuf,
    /// The folder of records and locks.
    #[arg(long, global = true, value_name = "DIR", default_value = "/run/clearway-aq")]
    run: PathBuf,
}

/// Who shares a device's link, and how: a file of tenants, or a scenario's entities.
#[derive(Debug, clap::Args)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only what attaches reads it"))]
struct Who {
    /// A file of tenants.
    #[arg(long, value_name = "FILE", required_unless_present = "scenario", conflicts_with = "scenario")]
    tenants: Option<PathBuf>,
    #[command(flatten)]
    scenario: Entities,
}

/// A scenario's entities, and whose packets are theirs.
#[derive(Debug, clap::Args)]
struct Entities {
    /// A scenario, whose entities become tenants.
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Of a scenario's entity: whose packets are its, such as "web=cgroup:/system.slice/nginx.service" or
    /// "db=ports:5432,5433"; once or more for each entity.
    #[arg(long = "match", value_name = "NAME=KIND:VALUE", requires = "scenario")]
    matches: Vec<String>,
    /// Of a scenario: the two ends of the link, the device's own first, if requests are about several links.
    #[arg(long, value_name = "FROM,TO", requires = "scenario")]
    link: Option<String>,
}

#[derive(Debug, Subcommand)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "other systems read what `check` and `simulate` need"))]
enum Command {
    /// Give tenants their shares of a device's link, or change them.
    Attach {
        /// The network device.
        device: String,
        #[command(flatten)]
        who: Who,
        /// The device's network namespace: a name of `ip netns`, a process id, or a path.
        #[arg(long, value_name = "NS")]
        netns: Option<String>,
        /// Insist on a hook; one that can't work is refused. Default: by what the device is.
        #[arg(long)]
        hook: Option<HookName>,
        /// Stay, and attach them again whenever the device is back after it was gone; until ^C or `detach`.
        #[arg(long)]
        keep: bool,
    },
    /// Leave a device as it was before `attach`.
    Detach {
        /// The network device.
        device: String,
        /// Its network namespace.
        #[arg(long, value_name = "NS")]
        netns: Option<String>,
    },
    /// Heal attachments: put a program first again, attach again one that was removed, look up cgroups that were made
    /// again.
    Refresh {
        /// The network device. Default: all of its namespace.
        device: Option<String>,
        /// Its network namespace.
        #[arg(long, value_name = "NS")]
        netns: Option<String>,
    },
    /// Show what tenants have and get, again and again until ^C.
    Show {
        /// The network device. Default: all.
        device: Option<String>,
        /// Its network namespace.
        #[arg(long, value_name = "NS")]
        netns: Option<String>,
        /// One JSON array, for programs, after one interval.
        #[arg(long)]
        json: bool,
        /// Seconds over which rates are measured.
        #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
        interval: f64,
        /// So many tables, then end. Default: without end.
        #[arg(long, value_name = "N")]
        count: Option<u64>,
        /// Serve Prometheus text on this port of 127.0.0.1 instead; 0 prints it once.
        #[arg(long, value_name = "PORT")]
        prometheus: Option<u16>,
    },
    /// Lend idle shares, if the attached tenants ask for work conservation; runs until it is ended.
    Divide {
        /// The network device.
        device: String,
        /// Its network namespace.
        #[arg(long, value_name = "NS")]
        netns: Option<String>,
    },
    /// Keep what is attached attached: heals it, follows a configuration, serves Prometheus text. Reads the
    /// configuration again when it changes, or by SIGHUP. Exit status: 0 told to end, 1 failed, 2 wrong arguments, 75
    /// another daemon runs, 77 a right is missing, 78 a wrong configuration.
    Daemon {
        /// A file of devices and their tenants. Without it only what others attach is kept.
        config: Option<PathBuf>,
    },
    /// A hook of a container's runtime (OCI): gives the container on standard input what its annotations ask for, or
    /// takes it back if it has stopped.
    Hook {
        /// The device that containers with a weight share.
        #[arg(long, value_name = "DEV", requires = "capacity")]
        device: Option<String>,
        /// The capacity of its link.
        #[arg(long, value_name = "RATE", requires = "device")]
        capacity: Option<units::Rate>,
    },
    /// Measure what a packet costs on this machine; attaches nothing.
    Cost {
        /// One JSON array, for programs.
        #[arg(long)]
        json: bool,
    },
    /// Check a file of tenants and say what each would be allocated; changes nothing.
    Check {
        /// The file.
        tenants: PathBuf,
        /// One JSON array, for programs.
        #[arg(long)]
        json: bool,
    },
    /// Print the file of tenants that a scenario's entities are; changes nothing.
    Tenants {
        #[command(flatten)]
        entities: Entities,
    },
    /// Predict by the simulator what each tenant would get; changes nothing.
    Simulate {
        /// The file.
        tenants: PathBuf,
        /// One JSON array, for programs.
        #[arg(long)]
        json: bool,
        /// Print the scenario instead, for `clearway run`.
        #[arg(long)]
        scenario: bool,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum HookName {
    Tcx,
    Clsact,
}

/// The whole command: reads arguments, works, says what went wrong.
pub fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    if std::env::args_os().len() == 1 && std::env::var_os("CNI_COMMAND").is_some() {
        // A container's runtime calls a plugin so.
        let (text, done) = crate::cni::main(&crate::place::Roots::default());
        print!("{text}");
        return if done { ExitCode::SUCCESS } else { ExitCode::from(FAILED) };
    }
    let arguments = Arguments::parse();
    #[cfg(target_os = "linux")]
    if let Command::Daemon { config } = &arguments.command {
        use crate::daemon::notify::{Level, log};
        let roots = crate::place::Roots { pins: arguments.pins, run: arguments.run };
        return match crate::daemon::run(&roots, config.as_deref()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                log(Level::Error, &failure.why);
                ExitCode::from(failure.status)
            }
        };
    }
    match act(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("clearway-aq: {why}");
            ExitCode::from(FAILED)
        }
    }
}

fn act(arguments: Arguments) -> Result<(), String> {
    match arguments.command {
        Command::Check { tenants, json } => check(&load(&tenants)?.1, json),
        Command::Simulate { tenants, json, scenario } => simulate(&load(&tenants)?.1, json, scenario),
        Command::Tenants { entities } => {
            print!("{}", entities.read()?.1);
            Ok(())
        }
        command => kernel(command, arguments.pins, arguments.run),
    }
}

impl Who {
    /// The name of what was read, the text of a file of tenants, and what it says.
    #[cfg(target_os = "linux")]
    fn read(&self) -> Result<(String, String, Tenants), String> {
        let Some(path) = &self.tenants else { return self.scenario.read() };
        let (text, tenants) = load(path)?;
        Ok((path.display().to_string(), text, tenants))
    }
}

impl Entities {
    /// The name of the scenario, its entities as the text of a file of tenants, and as tenants.
    fn read(&self) -> Result<(String, String, Tenants), String> {
        let path = self.scenario.as_ref().ok_or("--scenario FILE is missing: a scenario with entities")?;
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
        let scenario = scenario::read(&text, &name, &[]).map_err(|error| error.to_string())?;
        let link = self.link.as_deref().map(|link| {
            link.split_once(',').ok_or_else(|| format!("--link {link}: write two nodes, such as \"left,right\""))
        });
        let matches = from_scenario::matches(&self.matches)?;
        let taken = from_scenario::tenants(&scenario, &matches, link.transpose()?)
            .map_err(|problem| format!("{name}: {problem}"))?;
        for warning in &taken.warnings {
            eprintln!("warning: {name}: {warning}");
        }
        let text = toml::to_string(&taken.tenants).map_err(|error| format!("{name}: {error}"))?;
        Ok((name, text, taken.tenants))
    }
}

/// A file's text and what it says.
fn load(path: &std::path::Path) -> Result<(String, Tenants), String> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
    let tenants = read(&text, &name)?;
    Ok((text, tenants))
}

/// The assumptions on senders before anything is attached.
fn senders() -> Senders {
    #[cfg(target_os = "linux")]
    return Senders { timeout: crate::attach::timeout(), ..Senders::USUAL };
    #[cfg(not(target_os = "linux"))]
    Senders::USUAL
}

/// Grants at every position that the file asks at.
fn grants(tenants: &Tenants) -> Result<Vec<Grants>, String> {
    let senders = senders();
    let grant = |position| Grants::new(tenants, position, senders).map_err(|problem| problem.to_string());
    tenants.positions().into_iter().map(grant).collect()
}

fn check(tenants: &Tenants, json: bool) -> Result<(), String> {
    let mut all = Vec::new();
    for grants in grants(tenants)? {
        for warning in &grants.warnings {
            eprintln!("warning: {warning}");
        }
        for row in grants.rows() {
            all.push(serde_json::json!({
                "position": grants.position().name(), "tenant": row.name, "allocated_bps": row.rate.bps(),
                "limit_bytes": row.limit.get(), "threshold_bytes": row.threshold.map(|bytes| bytes.get()),
                "aqs": row.flows,
            }));
        }
    }
    if json {
        println!("{}", serde_json::to_string_pretty(&all).map_err(|error| error.to_string())?);
        return Ok(());
    }
    println!("{:8}  {:24}  {:>14}  {:>12}  {:>12}", "at", "tenant", "allocated", "limit", "marks above");
    for row in all {
        let bytes =
            |key: &str| row[key].as_u64().map_or("-".to_owned(), |bytes| format!("{} KB", bytes.div_ceil(1_000)));
        let rate = row["allocated_bps"].as_u64().filter(|&bps| bps > 0);
        println!(
            "{:8}  {:24}  {:>14}  {:>12}  {:>12}",
            row["position"].as_str().unwrap_or_default(),
            row["tenant"].as_str().unwrap_or_default(),
            rate.map_or("-".to_owned(), |bps| format!("{:.3} Mbps", bps as f64 / 1e6)),
            bytes("limit_bytes"),
            bytes("threshold_bytes"),
        );
    }
    Ok(())
}

fn simulate(tenants: &Tenants, json: bool, only_scenario: bool) -> Result<(), String> {
    let mut all = Vec::new();
    for grants in grants(tenants)? {
        if only_scenario {
            print!("{}", scenario_of(tenants, grants.position(), &grants)?);
            return Ok(());
        }
        for predicted in predict(tenants, grants.position(), &grants)? {
            all.push((grants.position(), predicted));
        }
    }
    if json {
        let values: Vec<_> = all
            .iter()
            .map(|(position, one)| {
                serde_json::json!({
                    "position": position.name(), "tenant": one.tenant, "allocated_bps": one.allocated_bps,
                    "passed_bps": one.passed_bps,
                })
            })
            .collect();
        println!("{}", serde_json::to_string_pretty(&values).map_err(|error| error.to_string())?);
        return Ok(());
    }
    println!("{:8}  {:24}  {:>14}  {:>14}  {:>9}", "at", "tenant", "allocated", "would get", "of it");
    for (position, one) in all {
        let mbps = |bps: u64| format!("{:.3} Mbps", bps as f64 / 1e6);
        let part = 100.0 * one.passed_bps as f64 / one.allocated_bps.max(1) as f64;
        let (allocated, passed) = (mbps(one.allocated_bps), mbps(one.passed_bps));
        println!("{:8}  {:24}  {allocated:>14}  {passed:>14}  {part:>8.1}%", position.name(), one.tenant);
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn kernel(_: Command, _: PathBuf, _: PathBuf) -> Result<(), String> {
    Err("only a Linux kernel runs the program; `check` and `simulate` work here".to_owned())
}

#[cfg(target_os = "linux")]
fn kernel(command: Command, pins: PathBuf, run: PathBuf) -> Result<(), String> {
    use crate::attach::{Asked, attach, refresh};
    use crate::detach::detach;
    use crate::device::Hook;
    use crate::netns::enter;
    use crate::place::{DevicePlace, Roots};

    let roots = Roots { pins, run };
    let into = |netns: &Option<String>| netns.as_deref().map_or(Ok(()), enter);
    match command {
        Command::Attach { device, who, netns, hook, keep } => {
            let (source, text, tenants) = who.read()?;
            into(&netns)?;
            let hook = hook.map(|hook| match hook {
                HookName::Tcx => Hook::Tcx,
                HookName::Clsact => Hook::Clsact,
            });
            let netns = netns.as_deref();
            let asked = Asked { device: &device, netns, text: &text, source: &source, hook, ..Asked::default() };
            let done = attach(&roots, &asked)?;
            for warning in done.warnings {
                eprintln!("warning: {warning}");
            }
            for line in done.lines {
                println!("{line}");
            }
            if tenants.divides() {
                println!("idle shares are lent while this runs: clearway-aq divide {device}");
            }
            if keep {
                return crate::keep::keep(&roots, &asked, &until_told()?, |line| println!("{line}"));
            }
            Ok(())
        }
        Command::Detach { device, netns } => {
            println!("{}", detach(&roots, &device, netns.as_deref(), into(&netns))?);
            Ok(())
        }
        Command::Refresh { device, netns } => {
            into(&netns)?;
            let devices = match device {
                Some(device) => vec![device],
                None => DevicePlace::of(&roots, netns.as_deref())?,
            };
            for device in devices {
                for line in refresh(&roots, &device, netns.as_deref())? {
                    println!("{line}");
                }
            }
            Ok(())
        }
        Command::Show { device, netns, json, interval, count, prometheus } => {
            let places = match &device {
                Some(device) => vec![DevicePlace::new(&roots, device, netns.as_deref())],
                None => DevicePlace::all(&roots),
            };
            show(&places, device.as_deref(), json, interval, count, prometheus)
        }
        Command::Divide { device, netns } => {
            crate::divide::divide(&DevicePlace::new(&roots, &device, netns.as_deref()), &until_told()?)
        }
        Command::Hook { device, capacity } => {
            let text = std::io::read_to_string(std::io::stdin()).map_err(|error| format!("standard input: {error}"))?;
            for line in crate::oci::main(&roots, &text, device.as_deref(), capacity)? {
                println!("{line}");
            }
            Ok(())
        }
        Command::Cost { json } => cost(json),
        Command::Daemon { .. } | Command::Check { .. } | Command::Simulate { .. } | Command::Tenants { .. } => Ok(()),
    }
}

/// Becomes true when the process is told to end.
#[cfg(target_os = "linux")]
fn until_told() -> Result<std::sync::Arc<std::sync::atomic::AtomicBool>, String> {
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::flag::register(signal, stop.clone()).map_err(|error| error.to_string())?;
    }
    Ok(stop)
}

#[cfg(target_os = "linux")]
fn cost(json: bool) -> Result<(), String> {
    crate::kernel::check_rights()?;
    let costs = crate::cost::measure()?;
    if json {
        println!("{}", serde_json::to_string_pretty(&costs).map_err(|error| error.to_string())?);
        return Ok(());
    }
    for cost in costs {
        println!("{:24}  {:>4} ns  {:>8.3} MB", cost.what, cost.ns, cost.mb);
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn show(
    places: &[crate::place::DevicePlace],
    device: Option<&str>,
    json: bool,
    interval: f64,
    count: Option<u64>,
    prometheus: Option<u16>,
) -> Result<(), String> {
    use std::io::IsTerminal;

    use crate::show::{Line, View, prometheus as as_prometheus, table};

    if !(interval.is_finite() && (0.0..=3_600.0).contains(&interval)) {
        return Err(format!("--interval {interval}: write seconds from 0 to 3600"));
    }
    let open =
        || -> Result<Vec<View>, String> { places.iter().filter_map(|place| View::open(place).transpose()).collect() };
    let lines = |views: &mut Vec<View>| -> Result<Vec<Line>, String> {
        let each: Result<Vec<_>, _> = views.iter_mut().map(View::lines).collect();
        Ok(each?.into_iter().flatten().collect())
    };
    let mut views = open()?;
    if views.is_empty() && prometheus.is_none() {
        return Err(match device {
            Some(device) => format!("{device}: nothing is attached there"),
            None => "nothing is attached to any device".to_owned(),
        });
    }
    match prometheus {
        Some(0) => {
            print!("{}", as_prometheus(&lines(&mut views)?));
            return Ok(());
        }
        // Opened anew for each request: tenants join and leave.
        Some(port) => return crate::serve::serve(port, || Ok(as_prometheus(&lines(&mut open()?)?))),
        None => {}
    }
    let mut left = if json { Some(1) } else { count };
    lines(&mut views)?;
    loop {
        std::thread::sleep(std::time::Duration::from_secs_f64(interval));
        let now = lines(&mut views)?;
        if json {
            println!("{}", serde_json::to_string_pretty(&now).map_err(|error| error.to_string())?);
        } else {
            if std::io::stdout().is_terminal() && left != Some(1) {
                // To the top, and clear what was there.
                print!("\x1b[H\x1b[2J");
            }
            print!("{}", table(&now));
            if let Some(place) = places.first()
                && let Some(status) = crate::daemon::status::read(place.roots())
            {
                print!("{}", status.said());
            }
        }
        left = left.map(|left| left.saturating_sub(1));
        if left == Some(0) {
            return Ok(());
        }
        // Tenants may have joined or left.
        let fresh = open()?;
        if fresh.iter().map(View::record).ne(views.iter().map(View::record)) {
            views = fresh;
            lines(&mut views)?;
        }
    }
}
