//! Equal flows that begin together: none is first more often than chance says.

use crate::{NONE, column, run_on, table};

/// Seeds, and how often one of eight may be first in as many runs. The chance that any of them is more often, if each
/// is first with a chance of 1/8, is 8 P(binomial(20, 1/8) > 8) = 0.3%.
const SEEDS: u64 = 20;
const MOST: usize = 8;

const TRANSPORTS: [&str; 12] =
    ["dctcp", "newreno", "cubic", "swift", "dcqcn", "ndp", "dcpim", "homa", "homa_aeolus", "phost", "pfabric", "uet"];

/// How often each of some flows was delivered first.
fn firsts(flows: usize, seeds: u64, rate: &str, transport: &str, traffic: &str) -> Vec<usize> {
    let mut firsts = vec![0; flows];
    for seed in 1..=seeds {
        let result = run_on(
            1,
            &format!(
                "timing = 'real'\nseed = {seed}\ntransport = '{transport}'\nmeasure.interval = '0s'\n\
                 fabric.star = {{ hosts = 9, rate = '{rate}' }}\n{traffic}"
            ),
        );
        let delivered = column(table(&result, "flows"), "delivered_ps");
        let flow = (0..flows).min_by_key(|&flow| delivered[flow]).unwrap();
        assert_ne!(delivered[flow], NONE);
        // Flows are in the order of their sources, or of their destinations.
        firsts[flow] += 1;
    }
    firsts
}

#[test]
fn of_eight_equal_senders_none_is_first_more_often_than_by_chance() {
    let traffic = "[[traffic]]\nsizes.constant = '200KB'\npattern.incast.degree = 8\nsenders = '0-7'\nreceivers = '8'\n\
                   arrivals = 'all_at_once'\nflows = 8";
    for transport in TRANSPORTS {
        let firsts = firsts(8, SEEDS, "10Gbps", transport, traffic);
        assert!(firsts.iter().all(|&count| count <= MOST), "{transport}: {firsts:?}");
    }
}

#[test]
fn of_eight_equal_flows_of_one_host_none_is_first_more_often_than_by_chance() {
    let class = |to: u32| {
        format!(
            "[[traffic]]\nname = 'to {to}'\nsizes.constant = '60KB'\nsenders = '8'\nreceivers = '{to}'\n\
             arrivals = 'all_at_once'\nflows = 1\n"
        )
    };
    let traffic: String = (0..8).map(class).collect();
    for transport in TRANSPORTS {
        let firsts = firsts(8, SEEDS, "10Gbps", transport, &traffic);
        assert!(firsts.iter().all(|&count| count <= MOST), "{transport}: {firsts:?}");
    }
}

/// Their first packets come to the switch at one picosecond, and nothing that happened before says which is served
/// first. The chance that one of two is first in 123 of 200 runs, or more often, is 2 P(binomial(200, 1/2) >= 123) =
/// 0.14%. pHost serves whose request came first.
#[test]
fn of_two_equal_senders_neither_wins_the_first_tie_more_often_than_by_chance() {
    let traffic = "[[traffic]]\nsizes.constant = '200KB'\npattern.incast.degree = 2\nsenders = '0-1'\n\
                   receivers = '8'\narrivals = 'all_at_once'\nflows = 2";
    for transport in ["phost", "homa", "dctcp", "dcpim"] {
        let firsts = firsts(2, 200, "100Gbps", transport, traffic);
        assert!(firsts.iter().all(|&count| count < 123), "{transport}: {firsts:?}");
    }
}
