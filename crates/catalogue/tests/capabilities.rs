//! What schemes declare is what they build: a declaration that is wrong fails here.

use clearway_catalogue::{LinkControl, Sharing, Transport};
use contract::sharing::{Hose, SwitchShares};
use contract::{Compared, Family, NetworkView, Undelivered};
use fabric::{FabricSpec, LeafSpine};
use node::{Clock, EndpointParams, Event};
use testing::{PacketFate, Scene, Wire};
use units::{Duration, HostId, Rate, Stream, SwitchId, Time};

/// Settings that change what a transport has, beside all defaults.
const OTHER_SETTINGS: [&str; 9] = [
    r#"{ "harmony": { "service": "round_robin" } }"#,
    r#"{ "harmony": { "slots": 1 } }"#,
    r#"{ "fastpass": { "clocks": "own" } }"#,
    r#"{ "ndp": { "paths": "switches" } }"#,
    r#"{ "uet": { "trimming": false } }"#,
    r#"{ "uet": { "congestion_control": "rccc" } }"#,
    r#"{ "dctcp": { "plb": {} } }"#,
    r#"{ "r2c2": { "control": { "centralised": { "controller": 1 } } } }"#,
    r#"{ "dcpim": { "departures": "authors_2022" } }"#,
];

fn transports() -> Vec<Transport> {
    let defaults = Transport::NAMES.iter().map(|name| Transport::named(name).unwrap());
    let other =
        OTHER_SETTINGS.iter().map(|text| serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}")));
    defaults.chain(other).collect()
}

fn network() -> NetworkView {
    let (rtt, hosts) = (Duration::from_us(8), 4);
    let site = EndpointParams {
        host: HostId(0),
        hosts,
        nic_rate: Rate::from_gbps(100),
        data_rtt: rtt,
        data_rtts: vec![(1, rtt), (3, rtt)],
        control_rtt: rtt,
        mtu_bytes: 1_500,
        header_bytes: 40,
        clock: Clock::default(),
        transport: 0,
    };
    let two_racks = LeafSpine { racks: 2, hosts_per_rack: 2, ..LeafSpine::default() };
    NetworkView::new(FabricSpec::LeafSpine(two_racks).build().unwrap(), &site)
}

#[test]
fn transports_have_the_parts_that_they_declare_and_no_others() {
    for transport in transports() {
        let (network, scheme, capabilities) = (network(), transport.as_scheme(), transport.as_scheme().capabilities());
        assert_eq!((transport.check(), transport.check_on(&network)), (Ok(()), Ok(())), "{transport:?}");
        for switch in (0..network.fabric.switches).map(SwitchId) {
            assert_eq!(scheme.agent(&network, switch).is_some(), capabilities.has_agent, "{transport:?}");
            assert_eq!(scheme.queueing(&network, switch).is_some(), capabilities.brings_queueing, "{transport:?}");
        }
        assert_eq!(scheme.guarantee(&network).is_some(), capabilities.guarantees, "{transport:?}");
    }
}

/// Only for want of room that it has for itself can a network reject a message.
#[test]
fn what_rejects_has_classes_of_its_own() {
    for transport in transports() {
        let scheme = transport.as_scheme();
        let reserves = scheme.requirements(&network().site).reserved_classes > 0;
        assert_eq!(scheme.capabilities().undelivered == Undelivered::Rejected, reserves, "{transport:?}");
    }
}

/// Nothing arrives of what a host sends, for a second.
#[test]
fn a_message_that_nobody_hears_of_ends_where_senders_give_up_and_there_alone() {
    for transport in transports() {
        let scheme = transport.as_scheme();
        let mut scene = Scene::new(2, Wire::default(), |site| scheme.endpoint(site, &NetworkView::star(site)));
        scene.spoil(|_, packet| if packet.src == HostId(0) { PacketFate::Drop } else { PacketFate::Pass });
        let flow = scene.send(Time::ZERO, 0, 1, 100_000);
        scene.run_until(Time::from_ms(1_000));
        let ends = scene.events.iter().filter(|event| !matches!(event.2, Event::Measured { .. }));
        let failed: Vec<bool> =
            ends.map(|event| matches!(event.2, Event::Failed { flow: of, .. } if of == flow)).collect();
        match scheme.capabilities().undelivered {
            Undelivered::Never => assert!(failed.is_empty(), "{transport:?}"),
            Undelivered::GivenUp | Undelivered::Rejected => assert_eq!(failed, [true], "{transport:?}"),
        }
    }
}

#[test]
fn who_is_compared_beside_another_is_so_beside_one_of_its_kind() {
    for transport in transports() {
        let capabilities = transport.as_scheme().capabilities();
        match capabilities.compared {
            Compared::With(name) => assert!(LinkControl::named(name).is_some_and(|of| of.as_scheme().is_some())),
            Compared::No | Compared::Alone => assert_ne!(capabilities.family, Family::Lossless, "{transport:?}"),
        }
    }
    for control in LinkControl::NAMES.iter().map(|name| LinkControl::named(name).unwrap()) {
        match control.compared() {
            Compared::With(name) => {
                let over = Transport::named(name).unwrap().as_scheme().capabilities();
                assert_eq!((over.family, control.family()), (Family::Lossless, Some(Family::Lossless)));
            }
            Compared::No => {}
            Compared::Alone => panic!("{control:?} carries nothing by itself"),
        }
    }
}

#[test]
fn mechanisms_stand_where_they_declare() {
    let network = network();
    let whole = Hose { outbound: Some(network.site.nic_rate), inbound: Some(network.site.nic_rate) };
    for sharing in Sharing::NAMES.iter().filter_map(|name| Sharing::named(name)) {
        let Some(scheme) = sharing.as_scheme() else { continue };
        assert_eq!(scheme.shaper(&network.site, whole).is_some(), scheme.limits_hosts(), "{sharing:?}");
        let nothing = SwitchShares {
            links: Vec::new(),
            steps: Vec::new(),
            untagged: Vec::new(),
            random: Stream::new(1, 0, "aq"),
        };
        let part = scheme.switch_part(nothing).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(part.is_some(), scheme.tagging().is_some(), "{sharing:?}");
        assert!(scheme.requirements().is_none() || scheme.limits_hosts(), "{sharing:?}: who would send its packets?");
    }
}

#[test]
fn names_are_those_of_the_entries() {
    assert!(Transport::NAMES.iter().all(|name| Transport::named(name).unwrap().name() == *name));
    assert!(LinkControl::NAMES.iter().all(|name| LinkControl::named(name).unwrap().name() == *name));
    assert!(Sharing::NAMES.iter().all(|name| Sharing::named(name).unwrap().name() == *name));
}

/// Timers that a scenario leaves out fit the network, here with links of 1 Mbps and buffers of 500 KB.
#[test]
fn timers_that_follow_from_the_network_are_no_shorter_than_its_round_trips() {
    let mut network = network();
    (network.site.data_rtt, network.site.control_rtt) = (Duration::from_ms(50), Duration::from_ms(3));
    network.site.nic_rate = Rate::from_bps(1_000_000);
    network.wait = Duration::from_ms(4_000);
    for transport in transports() {
        let timers = transport.as_scheme().timers(&network);
        for timer in timers.iter().filter(|timer| !timer.set) {
            // How long a request may wait is for the operator to choose.
            let short = timer.key == "delta_admission";
            assert_eq!(timer.after < network.site.data_rtt, short, "{} {timer:?}", transport.name());
        }
        // Nor are those that nothing measures shorter than a round trip over a full buffer.
        let constant = ["timeout", "patience", "resend_after", "rto_high", "min_retransmission_timeout"];
        let own_queues = ["pfabric", "phost", "fastpass"].contains(&transport.name());
        let constant = |key: &str| !own_queues && constant.iter().any(|end| key.ends_with(end));
        for timer in timers.iter().filter(|timer| constant(timer.key)) {
            assert!(timer.after >= network.loaded_rtt(), "{} {timer:?}", transport.name());
        }
    }
}
