//! Scenes: a description as a person writes it in TOML, and the defining property of the flows that come of it.

use std::collections::{BTreeMap, BTreeSet};

use clearway_workload::{FabricView, Flow, Hosts, Incast, Pattern, Sizes, Trace, TraceFlow, Traffic, generate};
use units::{Bytes, Duration, FlowId, HostId, Problem, Rate, Time};

/// The crate above brings a type of its own.
type Class = Traffic<String>;

/// Racks of equal hosts at 100 Gbps, without oversubscription.
fn racks(racks: u32, hosts_a_rack: u32) -> FabricView {
    let hosts = racks * hosts_a_rack;
    FabricView {
        rack_of: (0..hosts).map(|host| host / hosts_a_rack).collect(),
        host_rate: vec![Rate::from_gbps(100); hosts as usize],
        bisection: Rate::from_gbps(u64::from(hosts) * 50),
        narrowest: Rate::from_gbps(100),
    }
}

fn class(toml: &str) -> Class {
    toml::from_str(toml).unwrap_or_else(|error| panic!("{error}"))
}

fn flows(toml: &str, view: &FabricView, seed: u64) -> Vec<Flow> {
    generate(&[class(toml)], view, seed).unwrap_or_else(|problem| panic!("{problem}"))
}

fn problem(toml: &str, view: &FabricView) -> Problem {
    generate(&[class(toml)], view, 1).expect_err("this must be refused")
}

fn ends(flows: &[Flow]) -> Vec<(u32, u32)> {
    flows.iter().map(|flow| (flow.src.0, flow.dst.0)).collect()
}

/// Payload bits per second over the time of arrivals.
fn offered_bps(flows: &[Flow], seconds: f64) -> f64 {
    flows.iter().map(|flow| flow.bytes as f64).sum::<f64>() * 8.0 / seconds
}

/// For n Poisson arrivals of sizes S, the sum's standard error relative to its mean is sqrt(E[S^2] / n) / E[S].
fn relative_error(flows: &[Flow]) -> f64 {
    let n = flows.len() as f64;
    let mean = flows.iter().map(|f| f.bytes as f64).sum::<f64>() / n;
    let square = flows.iter().map(|f| f.bytes as f64 * f.bytes as f64).sum::<f64>() / n;
    square.sqrt() / mean / n.sqrt()
}

#[test]
fn offered_load_is_the_load_asked_for_within_three_standard_errors() {
    let view = racks(9, 16);
    for sizes in ["websearch", "imc10", "webserver"] {
        let toml = format!("sizes = '{sizes}'\narrivals = {{ poisson = {{ load = 0.6 }} }}\nduration = '20ms'");
        let flows = flows(&toml, &view, 5);
        let load = offered_bps(&flows, 0.02) / (144.0 * 100e9);
        assert!((load / 0.6 - 1.0).abs() < 3.0 * relative_error(&flows), "{sizes}: {load}");
    }
}

#[test]
fn load_may_be_of_the_bisection_the_narrowest_link_or_the_wire() {
    let mut view = racks(2, 8);
    view.bisection = Rate::from_gbps(100);
    view.narrowest = Rate::from_gbps(10);
    let offered = |pace: &str| {
        let toml =
            format!("sizes = {{ constant = '1KB' }}\narrivals = {{ poisson = {{ {pace} }} }}\nduration = '10ms'");
        let flows = flows(&toml, &view, 5);
        (offered_bps(&flows, 0.01), 3.0 * relative_error(&flows))
    };
    for (pace, bps) in [
        ("load = 0.5, of = 'host_links'", 0.5 * 16.0 * 100e9),
        ("load = 0.5, of = 'bisection'", 0.5 * 2.0 * 100e9),
        ("load = 0.5, of = 'narrowest_link'", 0.5 * 10e9),
        ("load = 0.5, counting = { wire = {} }", 0.5 * 16.0 * 100e9 * 1460.0 / 1500.0),
        ("load = 0.5, counting = { wire = { payload = '100B', header = '100B' } }", 0.25 * 16.0 * 100e9),
        // One message of 1 KB a microsecond.
        ("every = '1us'", 8e9),
    ] {
        let (offered, error) = offered(pace);
        assert!((offered / bps - 1.0).abs() < error, "{pace}: {offered} and not {bps}");
    }
}

#[test]
fn senders_share_the_load_by_their_links() {
    let mut view = racks(1, 3);
    view.host_rate[2] = Rate::from_gbps(400);
    let flows = flows("sizes = { constant = '1KB' }\narrivals = { poisson = { load = 0.5 } }\nflows = 60000", &view, 1);
    let share = flows.iter().filter(|flow| flow.src == HostId(2)).count() as f64 / 60_000.0;
    // Binomial: standard error sqrt(p (1 - p) / n) = 0.0019 at p = 4/6.
    assert!((share - 4.0 / 6.0).abs() < 3.0 * 0.0019, "{share}");
    let rate = offered_bps(&flows, flows.last().unwrap().start.secs_f64());
    assert!((rate / 300e9 - 1.0).abs() < 3.0 / 60_000f64.sqrt(), "{rate}");
}

#[test]
fn poisson_gaps_are_exponential_and_sources_independent() {
    let flows = flows(
        "sizes = { constant = '1KB' }\narrivals = { poisson = { every = '1us' } }\nflows = 100000",
        &racks(2, 4),
        3,
    );
    let gaps: Vec<f64> = flows.windows(2).map(|w| (w[1].start - w[0].start).us_f64()).collect();
    let n = gaps.len() as f64;
    for t in [0.1f64, 1.0, 3.0] {
        let share = gaps.iter().filter(|gap| **gap > t).count() as f64 / n;
        let p = (-t).exp();
        assert!((share - p).abs() < 3.5 * (p * (1.0 - p) / n).sqrt(), "P(gap > {t}) = {share}");
    }
    // All 64 pairs of neighbouring sources are equally likely: chi-square with 63 degrees of freedom, sd 11.2.
    let mut pairs = [0f64; 64];
    flows.windows(2).for_each(|w| pairs[w[0].src.index() * 8 + w[1].src.index()] += 1.0);
    let chi: f64 = pairs.iter().map(|count| (count - n / 64.0) * (count - n / 64.0) / (n / 64.0)).sum();
    assert!((chi - 63.0).abs() < 4.0 * 11.2, "{chi}");
}

#[test]
fn the_same_seed_gives_the_same_flows_and_another_gives_others() {
    let toml = "sizes = 'websearch'\narrivals = { poisson = { load = 0.6 } }\nflows = 5000";
    let view = racks(9, 16);
    assert_eq!(flows(toml, &view, 1), flows(toml, &view, 1));
    let same = |f: fn(&Flow) -> u64| {
        let (one, two) = (flows(toml, &view, 1), flows(toml, &view, 2));
        one.iter().zip(&two).filter(|(a, b)| f(a) == f(b)).count()
    };
    // By chance 5000/144 = 35 sources agree (sd 5.9), and as many destinations.
    assert!(same(|f| f.start.ps()) < 5);
    assert!((same(|f| u64::from(f.src.0)) as f64 - 35.0).abs() < 4.0 * 5.9);
    assert!((same(|f| u64::from(f.dst.0)) as f64 - 35.0).abs() < 4.0 * 5.9);
}

#[test]
fn a_class_does_not_change_when_others_come_or_when_its_load_does() {
    let view = racks(2, 8);
    let base = "sizes = 'imc10'\nflows = 500\narrivals = { poisson = { load = LOAD } }\nname = 'base'";
    let low = flows(&base.replace("LOAD", "0.4"), &view, 7);
    let high = flows(&base.replace("LOAD", "0.8"), &view, 7);
    assert!(low.iter().zip(&high).all(|(l, h)| (l.src, l.dst, l.bytes) == (h.src, h.dst, h.bytes)));
    assert!(low.iter().zip(&high).all(|(l, h)| l.start.ps().abs_diff(2 * h.start.ps()) <= 2));

    let other = class(
        "name = 'incast'\nsizes = { constant = '64KB' }\npattern = { incast = { degree = 5 } }\n\
                       arrivals = { periodic = { every = '10us' } }\nduration = '1ms'",
    );
    let both = generate(&[other, class(&base.replace("LOAD", "0.4"))], &view, 7).unwrap();
    assert!(both.windows(2).all(|w| (w[0].start, w[0].class, w[0].src) <= (w[1].start, w[1].class, w[1].src)));
    let own: Vec<Flow> = both.iter().filter(|f| f.class == 1).map(|f| Flow { class: 0, ..*f }).collect();
    assert_eq!(own, low);
}

#[test]
fn classes_of_one_stream_send_the_same_from_different_hosts() {
    let toml = |name, senders| {
        format!(
            "name = '{name}'\nstream = 'trace'\nsizes = 'websearch'\narrivals = 'all_at_once'\nflows = 100\n\
             senders = '{senders}'"
        )
    };
    let both = generate(&[class(&toml("a", "0")), class(&toml("b", "1-4"))], &racks(2, 8), 3).unwrap();
    let [a, b] = [0, 1].map(|class| both.iter().filter(|f| f.class == class).map(|f| f.bytes).collect::<Vec<_>>());
    let sorted = |mut sizes: Vec<u64>| {
        sizes.sort_unstable();
        sizes
    };
    assert_eq!(sorted(a), sorted(b));
}

#[test]
fn all_to_all_reaches_everyone_but_the_sender_evenly() {
    let flows = flows("sizes = 'memcached'\narrivals = { poisson = { load = 0.5 } }\nflows = 90000", &racks(2, 5), 2);
    let mut pairs = BTreeMap::new();
    ends(&flows).into_iter().for_each(|pair| *pairs.entry(pair).or_insert(0u32) += 1);
    assert!(pairs.keys().all(|(src, dst)| src != dst) && pairs.len() == 90);
    // 1000 a pair, standard deviation 31.6.
    assert!(pairs.values().all(|count| count.abs_diff(1000) < 5 * 32), "{pairs:?}");
}

#[test]
fn a_permutation_gives_each_one_partner() {
    for seed in 0..20 {
        let flows = flows(
            "sizes = 'memcached'\npattern = 'permutation'\narrivals = 'all_at_once'\nflows = 20",
            &racks(2, 5),
            seed,
        );
        let pairs: BTreeSet<(u32, u32)> = ends(&flows).into_iter().collect();
        assert!(pairs.len() == 10 && pairs.iter().all(|(src, dst)| src != dst), "drawn once for both rounds");
        assert_eq!(pairs.iter().map(|pair| pair.0).collect::<BTreeSet<_>>().len(), 10);
        assert_eq!(pairs.iter().map(|pair| pair.1).collect::<BTreeSet<_>>().len(), 10);
    }
}

#[test]
fn a_stride_goes_so_many_hosts_on() {
    let flows =
        flows("sizes = 'memcached'\npattern = { stride = { by = 3 } }\narrivals = 'all_at_once'", &racks(1, 5), 1);
    assert_eq!(ends(&flows), [(0, 3), (1, 4), (2, 0), (3, 1), (4, 2)]);
}

#[test]
fn dense_is_every_pair_and_a_shuffle_every_pair_of_two_racks() {
    let view = racks(3, 4);
    let dense = ends(&flows("sizes = 'memcached'\npattern = 'dense'\narrivals = 'all_at_once'", &view, 1));
    assert_eq!(dense.len(), 12 * 11);
    assert_eq!(dense.iter().collect::<BTreeSet<_>>().len(), 12 * 11);
    let shuffle = "sizes = 'memcached'\npattern = { rack_shuffle = {} }\narrivals = 'all_at_once'";
    let shuffle = ends(&flows(shuffle, &view, 1));
    assert_eq!(shuffle.len(), 12 * 4);
    assert!(shuffle.iter().all(|(src, dst)| (src / 4 + 1) % 3 == dst / 4));
    // dcPIM section 4.1: 16 senders of a rack to 16 receivers of another, as a dense matrix between two sets.
    let parts =
        "sizes = 'memcached'\npattern = 'dense'\narrivals = 'all_at_once'\nsenders = 'rack 0'\nreceivers = 'rack 2'";
    assert_eq!(flows(parts, &view, 1).len(), 16);
}

#[test]
fn an_incast_is_many_to_one_at_once() {
    let view = racks(9, 16);
    let toml = "sizes = { constant = '128KB' }\npattern = { incast = { degree = 50 } }\nreceivers = 'rack 1'\n\
                arrivals = { periodic = { every = '100us' } }\nduration = '600us'\nstart = '1us'";
    let flows = flows(toml, &view, 4);
    assert_eq!(flows.len(), 6 * 50);
    for (round, group) in flows.chunks(50).enumerate() {
        assert!(group.iter().all(|f| f.start == Time::from_us(1 + 100 * round as u64) && f.dst == group[0].dst));
        assert!((16..32).contains(&group[0].dst.0));
        assert_eq!(group.iter().map(|f| f.src).collect::<BTreeSet<_>>().len(), 50);
        assert!(group.iter().all(|f| f.src != f.dst));
    }
    assert!(flows.iter().map(|f| f.dst).collect::<BTreeSet<_>>().len() > 1, "the receiver changes");
}

#[test]
fn pyrrhas_incast_mix_keeps_the_destination_free_of_other_traffic() {
    // Pyrrha section 6.2: Poisson at 0.8 that avoids the destination, 720-to-1 incasts of 30-40 packets at 0.5.
    let view = racks(10, 16);
    let background = class(
        "name = 'background'\nsizes = 'webserver'\navoid = '0'\n\
                            arrivals = { poisson = { load = 0.8 } }\nduration = '10ms'",
    );
    let incast = class(
        "name = 'incast'\nsizes = { uniform = { min = '43800B', max = '58400B' } }\nround_to = '1460B'\n\
                        pattern = { incast = { degree = 144, flows_per_sender = 5 } }\nreceivers = '0'\n\
                        senders = 'racks 1-9'\n\
                        arrivals = { periodic = { load = 0.5 } }\nduration = '50ms'",
    );
    let flows = generate(&[background, incast], &view, 1).unwrap();
    assert!(flows.iter().filter(|f| f.class == 0).all(|f| f.dst != HostId(0)));
    let incast: Vec<Flow> = flows.into_iter().filter(|f| f.class == 1).collect();
    assert!(incast.iter().all(|f| f.dst == HostId(0) && f.bytes % 1460 == 0 && (30..=40).contains(&(f.bytes / 1460))));
    let instants: Vec<Time> = incast.iter().map(|f| f.start).collect::<BTreeSet<_>>().into_iter().collect();
    assert_eq!(incast.len(), 720 * instants.len());
    // 720 x 35 x 1460 B at half of 100 Gbps.
    let period = 720.0 * 35.0 * 1460.0 * 8.0 / 50e9;
    assert!(((instants[1] - instants[0]).secs_f64() / period - 1.0).abs() < 1e-9);
}

#[test]
fn an_outcast_is_one_to_many() {
    let toml = "sizes = 'memcached'\npattern = { outcast = { degree = 9 } }\narrivals = 'all_at_once'";
    let flows = flows(toml, &racks(2, 5), 1);
    assert!(flows.len() == 9 && flows.iter().all(|f| f.src == flows[0].src));
    assert_eq!(flows.iter().map(|f| f.dst).collect::<BTreeSet<_>>().len(), 9);
}

#[test]
fn hot_spots_get_their_share() {
    let toml = "sizes = 'memcached'\npattern = { hot_spots = { hosts = '0-1', share = 0.7 } }\nsenders = '2-9'\n\
                arrivals = { poisson = { load = 0.5 } }\nflows = 40000";
    let flows = flows(toml, &racks(2, 5), 1);
    let share = flows.iter().filter(|f| f.dst.0 < 2).count() as f64 / 40_000.0;
    assert!((share - 0.7).abs() < 3.0 * (0.7f64 * 0.3 / 40_000.0).sqrt(), "{share}");
}

#[test]
fn receivers_are_drawn_by_their_weights_and_never_the_sender_itself() {
    // Hosts 0 to 3 weigh 1, 0, 2 and 5: of what host 3 sends host 0 gets a third, of what host 1 sends an eighth.
    let toml = "sizes = { constant = '1KB' }\npattern = { weighted = [1, 0, 2, 5] }\n\
                arrivals = { periodic = { every = '1us', jitter = '100ns' } }\nflows = 80000";
    let flows = flows(toml, &racks(2, 2), 1);
    let mut got = [[0u32; 4]; 4];
    flows.iter().for_each(|flow| got[flow.src.index()][flow.dst.index()] += 1);
    for (src, weights) in [(0, [0.0, 0.0, 2.0, 5.0]), (1, [1.0, 0.0, 2.0, 5.0]), (3, [1.0, 0.0, 2.0, 0.0])] {
        let sum: f64 = weights.iter().sum();
        for (dst, weight) in weights.iter().enumerate() {
            let (share, of_it) = (weight / sum, f64::from(got[src][dst]) / 20_000.0);
            assert!((of_it - share).abs() <= 4.0 * (share * (1.0 - share) / 20_000.0).sqrt(), "{src} {dst} {of_it}");
        }
    }
}

#[test]
fn hot_experts_get_their_share_of_every_sender_s_bytes() {
    let toml = "sizes = { constant = '1MB' }\npattern = { moe = { hot = 2, share = 0.6, redraw_every = 2 } }\n\
                arrivals = { periodic = { every = '10ms' } }\nduration = '40ms'";
    let flows = flows(toml, &racks(2, 8), 1);
    assert_eq!(flows.len(), 4 * 16 * 15);
    let hot: Vec<Vec<u32>> = flows
        .chunks(16 * 15)
        .map(|round| {
            let mut got = [0u64; 16];
            round.iter().for_each(|f| got[f.dst.index()] += f.bytes);
            let mut order: Vec<u32> = (0..16).collect();
            order.sort_by_key(|host| (u64::MAX - got[*host as usize], *host));
            let mut hot = order[..2].to_vec();
            hot.sort_unstable();
            for of_sender in round.chunks(15) {
                let sum = |f: &dyn Fn(&&Flow) -> bool| of_sender.iter().filter(f).map(|f| f.bytes).sum::<u64>() as f64;
                let (all, to_hot) = (sum(&|_| true), sum(&|f| hot.contains(&f.dst.0)));
                assert!((all / 15e6 - 1.0).abs() < 1e-5 && (to_hot / all - 0.6).abs() < 1e-5, "{all} {to_hot}");
            }
            hot
        })
        .collect();
    assert!(hot[0] == hot[1] && hot[2] == hot[3] && hot[0] != hot[2], "{hot:?}");
}

#[test]
fn phases_cut_silences_into_time() {
    let toml = "sizes = { constant = '1KB' }\narrivals = { poisson = { load = 0.5 } }\nstart = '1ms'\n\
                duration = '10ms'\n\
                phases = { on = '300us', off = '700us' }";
    let flows = flows(toml, &racks(1, 4), 1);
    assert!(flows.iter().all(|f| (f.start - Time::from_ms(1)).ps() % 1_000_000_000 < 300_000_000));
    let load = offered_bps(&flows, 0.01 * 0.3) / 400e9;
    assert!((load / 0.5 - 1.0).abs() < 3.0 * relative_error(&flows), "{load}");
}

#[test]
fn a_closed_loop_keeps_so_many_outstanding() {
    let toml = "sizes = 'memcached'\narrivals = { closed_loop = { outstanding = 3, think = '2us' } }\nstart = '5us'\n\
                flows = 100";
    let flows = flows(toml, &racks(2, 5), 1);
    assert_eq!(flows.len(), 100);
    for (index, flow) in flows.iter().enumerate() {
        match flow.after {
            None => assert_eq!(flow.start, Time::from_us(5)),
            Some(FlowId(before)) => {
                assert!((before as usize) < index && flows[before as usize].src == flow.src);
                assert_eq!(flow.start, Time::from_us(2));
            }
        }
    }
    assert_eq!(flows.iter().filter(|f| f.after.is_none()).count(), 30);
    let waited_for: Vec<_> = flows.iter().filter_map(|f| f.after).collect();
    assert_eq!(waited_for.iter().collect::<BTreeSet<_>>().len(), waited_for.len(), "each completion starts one");
}

#[test]
fn traces_keep_their_chains_and_lose_what_is_cut_off() {
    let flow = |src, dst, start, after| TraceFlow {
        src: HostId(src),
        dst: HostId(dst),
        bytes: 9,
        start: Time::from_us(start),
        after,
        line: 1,
    };
    let trace = Trace::new("t", vec![flow(0, 1, 1, Some(2)), flow(1, 2, 30, None), flow(0, 2, 20, None)]).unwrap();
    let mut class = Class::from_trace("trace", trace.clone());
    class.start = Time::from_us(100);
    let flows = generate(std::slice::from_ref(&class), &racks(1, 3), 1).unwrap();
    let read: Vec<_> = flows.iter().map(|f| (f.src.0, f.start, f.after)).collect();
    assert_eq!(
        read,
        [(0, Time::from_us(120), None), (1, Time::from_us(130), None), (0, Time::from_us(1), Some(FlowId(0)))]
    );
    class.duration = Some(Duration::from_us(10));
    assert!(generate(std::slice::from_ref(&class), &racks(1, 3), 1).unwrap().is_empty());
    let error = generate(&[class], &racks(1, 2), 1).unwrap_err();
    assert!(error.key == "[0].trace" && error.message.contains("below 2"), "{error}");
}

#[test]
fn files_are_read_through_the_caller() {
    let mut sizes = class(
        "sizes = { cdf_file = { path = 'w.txt', unit = 'packets', probability = 'percent' } }\n\
                           arrivals = 'all_at_once'",
    );
    assert!(generate(std::slice::from_ref(&sizes), &racks(1, 2), 1).unwrap_err().key.ends_with("cdf_file.path"));
    let mut sizes_file = sizes.clone();
    sizes.load(|path| Ok(format!("# {path}\n2 0\n2 100\n").into_bytes())).unwrap();
    let again: Class = toml::from_str(&toml::to_string(&sizes).unwrap()).unwrap();
    assert_eq!(again, sizes, "what was read is part of the description");
    assert!(generate(&[again], &racks(1, 2), 1).unwrap().iter().all(|f| f.bytes == 2920));

    let mut trace = class("trace = { hpcc = { path = 'flow.txt' } }");
    assert!(trace.load(|_| Err(std::io::ErrorKind::NotFound.into())).unwrap_err().message.contains("flow.txt"));
    let error = trace.load(|_| Ok("1\n0 1 3 100 x 0\n".into())).unwrap_err();
    assert!(error.message.contains("flow.txt, line 2: bytes is \"x\""), "{error}");
    let error = trace.load(|_| Ok(b"1\n\xff 1 3 100 1 0\n".into())).unwrap_err();
    assert!(error.message.contains("flow.txt, line 2: text is \"byte 0xff\", but should be UTF-8"), "{error}");
    let error = sizes_file.load(|_| Ok(vec![0xff])).unwrap_err();
    assert!(error.message.contains("\"w.txt\" is not UTF-8"), "{error}");
}

#[test]
fn problems_name_the_key_and_what_would_be_right() {
    let view = racks(2, 4);
    let poisson = "sizes = 'websearch'\nflows = 5\narrivals = { poisson = { load = 0.6 } }\n";
    let once = "sizes = 'websearch'\narrivals = 'all_at_once'\n";
    for (toml, key) in [
        ("arrivals = 'all_at_once'".to_owned(), "sizes"),
        ("sizes = 'websearch'".to_owned(), "arrivals"),
        (poisson.replace("0.6", "0.0"), "arrivals.poisson.load"),
        (poisson.replace("0.6", "-1.0"), "arrivals.poisson.load"),
        (poisson.replace("0.6", "nan"), "arrivals.poisson.load"),
        (poisson.replace("load = 0.6", ""), "arrivals.poisson.load"),
        (poisson.replace("load = 0.6", "load = 0.6, every = '1us'"), "arrivals.poisson.load"),
        (poisson.replace("flows = 5", ""), "flows"),
        (poisson.replace("flows = 5", "flows = 4000000000"), "flows"),
        (poisson.replace("flows = 5", "duration = '3000s'"), "duration"),
        (format!("{poisson}senders = '8'"), "senders"),
        (format!("{poisson}senders = '1'\nreceivers = '1'"), "senders"),
        (format!("{poisson}avoid = '0-7'"), "receivers"),
        (format!("{once}pattern = {{ incast = {{ degree = 8 }} }}"), "pattern.incast.degree"),
        (format!("{once}pattern = {{ incast = {{ degree = 0 }} }}"), "pattern.incast.degree"),
        (format!("{once}pattern = {{ outcast = {{ degree = 8 }} }}"), "pattern.outcast.degree"),
        (format!("{once}pattern = {{ stride = {{ by = 16 }} }}"), "pattern.stride.by"),
        (format!("{once}pattern = {{ rack_shuffle = {{ by = 2 }} }}"), "pattern.rack_shuffle.by"),
        (format!("{once}pattern = {{ moe = {{ hot = 8, share = 0.5 }} }}"), "pattern.moe.hot"),
        (format!("{once}pattern = {{ hot_spots = {{ hosts = '0', share = 1.5 }} }}"), "pattern.hot_spots.share"),
        (format!("{once}pattern = {{ weighted = [1, 2] }}"), "pattern.weighted"),
        (format!("{once}pattern = {{ weighted = [1, 2, -1] }}\nreceivers = '0-2'"), "pattern.weighted"),
        (format!("{once}pattern = {{ weighted = [0, 2, 0] }}\nreceivers = '0-2'"), "pattern.weighted"),
        (format!("{once}pattern = 'permutation'\nreceivers = '0-2'"), "receivers"),
    ] {
        assert_eq!(problem(&toml, &view).key, format!("[0].{key}"), "{toml}");
    }
    let twins = [class(poisson), class(once)];
    assert_eq!(generate(&twins, &view, 1).unwrap_err().key, "[1].name");
    let unknown = toml::from_str::<Class>("sizes = 'websearch'\nlode = 3").unwrap_err().to_string();
    assert!(unknown.contains("lode"), "{unknown}");
}

#[test]
fn editors_get_a_schema() {
    let schema = schemars::schema_for!(Class);
    let required = schema.get("required").and_then(|required| required.as_array()).map_or(0, Vec::len);
    assert_eq!(required, 0, "a trace needs no sizes, sizes need no trace: {required} keys are required");
    assert!(schema.pointer("/$defs/Sizes").is_some_and(|sizes| sizes.to_string().contains("websearch")));
}

#[test]
fn a_million_flows_fit_in_less_than_100_mb() {
    let flows =
        flows("sizes = 'websearch'\narrivals = { poisson = { load = 0.6 } }\nflows = 1000000", &racks(9, 16), 1);
    assert_eq!(flows.len(), 1_000_000);
    // Beside the list itself a stable sort borrows at most half of it again.
    assert!(size_of::<Flow>() * 1_000_000 * 3 / 2 < 100_000_000);
}

/// The most bytes that one end of a class's flows has in any span of this length, by host.
fn busiest_span(flows: &[Flow], host: impl Fn(&Flow) -> HostId, span: Duration) -> BTreeMap<HostId, u128> {
    let mut busiest = BTreeMap::new();
    for (index, first) in flows.iter().enumerate() {
        let inside = flows[index..].iter().take_while(|flow| flow.start < first.start + span);
        let bytes = inside.filter(|flow| host(flow) == host(first)).map(|flow| u128::from(flow.bytes)).sum::<u128>();
        let most = busiest.entry(host(first)).or_insert(0);
        *most = bytes.max(*most);
    }
    busiest
}

/// Harmony's own: 128 KB in 63 us of 100 Gbps, which six fit in; and they come as often as they were asked to.
#[test]
fn an_admissible_class_keeps_its_load_and_its_messages() {
    let view = racks(9, 16);
    let toml = "sizes = { constant = '128KB' }\narrivals = { poisson = { load = 0.8 } }\nduration = '5ms'\n";
    let (free, kept) = (flows(toml, &view, 5), flows(&format!("{toml}admissible = '63us'"), &view, 5));
    let span = Duration::from_us(63);
    assert!(
        busiest_span(&free, |flow| flow.dst, span).values().max() > Some(&(6 * 128_000)),
        "the rule has work to do"
    );
    for host in [|flow: &Flow| flow.src, |flow: &Flow| flow.dst] {
        assert!(busiest_span(&kept, host, span).values().all(|bytes| *bytes <= 6 * 128_000));
    }
    let pairs = |flows: &[Flow]| {
        let mut pairs: Vec<_> = flows.iter().map(|flow| (flow.src, flow.dst, flow.bytes)).collect();
        pairs.sort_unstable();
        pairs
    };
    assert_eq!(pairs(&kept), pairs(&free));
    // As many are moved out of a span as into it, once the first ones have no successor to make room for.
    let steady = Time::from_ms(1)..Time::from_ms(5);
    let steady: Vec<Flow> = kept.iter().filter(|flow| steady.contains(&flow.start)).copied().collect();
    let load = offered_bps(&steady, 0.004) / (144.0 * 100e9);
    assert!((load / 0.8 - 1.0).abs() < 3.0 * relative_error(&steady), "{load}");
}

#[test]
fn a_message_that_is_moved_arrives_as_soon_as_both_ends_can_have_it() {
    // 12.5 KB in 1 us of 100 Gbps: one message of 10 KB at a time at each end. All four of a stride arrive at once,
    // twice.
    let toml =
        "sizes = { constant = '10KB' }\narrivals = 'all_at_once'\nflows = 8\npattern = { stride = { by = 1 } }\n";
    let starts = |window: &str| {
        let flows = flows(&format!("{toml}admissible = '{window}'"), &racks(1, 4), 1);
        flows.iter().map(|flow| flow.start).collect::<Vec<_>>()
    };
    let (now, then) = ([Time::ZERO; 4], [Time::from_us(1); 4]);
    assert_eq!(starts("1us"), [now, then].concat());
    // 20 KB just fill 1.6 us, and must be less: "load < 1". A picosecond more has room for them.
    assert_eq!(starts("1600ns"), [now, [Time::from_ps(1_600_000); 4]].concat());
    assert_eq!(starts("1600.001ns"), [now, now].concat());
}

#[test]
fn what_can_never_be_admissible_is_refused() {
    let view = racks(2, 4);
    let once = "sizes = { constant = '1MB' }\narrivals = 'all_at_once'\n";
    let error = problem(&format!("{once}admissible = '63us'"), &view);
    assert_eq!(error.key, "[0].admissible");
    for word in ["1MB", "63us", "787.5KB", "write more than 80us"] {
        assert!(error.message.contains(word), "{word} is not in {error}");
    }
    assert!(problem(&format!("{once}admissible = '0us'"), &view).message.contains("no message fits"));
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(48))]
    #[test]
    fn every_span_of_an_admissible_class_has_room(
        seed: u64, load in 0.3f64..1.2, span_us in 4u64..40, min in 1u64..3_000, more in 0u64..20_000,
            arrivals in 0usize..4,
        wire: bool, receiver in proptest::option::of(0u32..6), slow in 0usize..6,
    ) {
        let mut view = racks(2, 3);
        view.host_rate[slow] = Rate::from_gbps(50);
        let counting = if wire { ", counting = { wire = {} }" } else { "" };
        let mut class = class(&[
            format!("arrivals = {{ poisson = {{ load = {load}{counting} }} }}\nflows = 400"),
            format!("arrivals = {{ periodic = {{ load = {load}, jitter = '30us'{counting} }} }}\nflows = 400"),
            format!("arrivals = {{ poisson = {{ load = {load}{counting} }} }}\nflows = 300\n\
                     pattern = {{ incast = {{ degree = 3 }} }}"),
            "arrivals = 'all_at_once'\nflows = 120".to_owned(),
        ][arrivals]);
        let wire = wire && arrivals < 3;
        class.sizes = Some(Sizes::Uniform(clearway_workload::Uniform { min: Bytes(min), max: Bytes(min + more) }));
        class.receivers = receiver.map(|host| Hosts::one(HostId(host)));
        let (free, span) = (generate(std::slice::from_ref(&class), &view, seed).unwrap(), Duration::from_us(span_us));
        class.admissible = Some(span);
        let kept = generate(&[class], &view, seed).unwrap();
        for host in [|flow: &Flow| flow.src, |flow: &Flow| flow.dst] {
            for (host, bytes) in busiest_span(&kept, host, span) {
                let (bytes, per) = if wire { (bytes * 1_500, 1_460) } else { (bytes, 1) };
                let room = u128::from(view.host_rate[host.index()].bps()) * u128::from(span.ps());
                proptest::prop_assert!(bytes * 8_000_000_000_000 < room * per, "{} in {}", bytes, span);
            }
        }
        proptest::prop_assert_eq!(kept.iter().map(|flow| flow.bytes).sum::<u64>(), free.iter().map(|flow| flow.bytes)
            .sum::<u64>());
        proptest::prop_assert!(kept.iter().zip(&free).all(|(kept, free)| kept.start >= free.start), "none comes early");
    }
}

proptest::proptest! {
    #[test]
    fn whatever_is_described_the_flows_are_sound(
        racks_ in 1u32..4, per_rack in 1u32..5, pattern in 0usize..5, degree in 1u32..4, count in 1u64..60, seed: u64,
        loops in 0u32..3, receiver in proptest::option::of(0u32..6),
    ) {
        let view = racks(racks_, per_rack);
        let pattern = [
            Pattern::AllToAll,
            Pattern::Permutation,
            Pattern::Dense,
            Pattern::Incast(Incast { degree, flows_per_sender: 2 }),
            Pattern::RackShuffle(clearway_workload::RackShuffle { by: 1 }),
        ][pattern].clone();
        let mut class = class(&match loops {
            0 => "arrivals = 'all_at_once'".to_owned(),
            n => format!("arrivals = {{ closed_loop = {{ outstanding = {n} }} }}"),
        });
        class.sizes = Some(Sizes::Constant(Bytes(10)));
        class.pattern = Some(pattern);
        class.flows = Some(count);
        class.receivers = receiver.map(|host| Hosts::one(HostId(host)));
        if let Ok(flows) = generate(&[class], &view, seed) {
            proptest::prop_assert_eq!(flows.len() as u64, count);
            for (index, flow) in flows.iter().enumerate() {
                proptest::prop_assert!(flow.src != flow.dst && flow.src.0 < view.hosts() && flow.dst.0 < view.hosts());
                proptest::prop_assert!(flow.after.is_none_or(|id| id.index() < index
                    && flows[id.index()].src == flow.src));
            }
        }
    }
}
