//! Equal flows that begin together: none is first more often than chance says.

use crate::{NONE, column, run_on, table};

/// Seeds, and how often one of eight may be first in as many runs. The chance that any of them is more often, if each
/// is first with a chance of 1/8, is 8 P(binomial(20, 1/8) > 8) = 0.3%.
const SEEDS: u64 = 20;
const MOST: usize = 8;

const TRANSPORTS: [&str; 12] =
    ["dctcp", "newreno", "cubic", "swift", "dcqcn", "ndp", "dcpim", "homa", "homa_aeolus", "phost", "pfabric", "uet"];

/// How often each of eight flows was delivered first.
fn firsts(transport: &str, traffic: &str) -> Vec<usize> {
    let mut firsts = vec![0; 8];
    for seed in 1..=SEEDS {
        let result = run_on(
            1,
            &format!(
                "timing = 'real'\nseed = {seed}\ntransport = '{transport}'\nmeasure.interval = '0s'\n\
                 fabric.star = {{ hosts = 9, rate = '10Gbps' }}\n{traffic}"
            ),
        );
        let delivered = column(table(&result, "flows"), "delivered_ps");
        let flow = (0..8).min_by_key(|&flow| delivered[flow]).unwrap();
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
        let firsts = firsts(transport, traffic);
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
        let firsts = firsts(transport, &traffic);
        assert!(firsts.iter().all(|&count| count <= MOST), "{transport}: {firsts:?}");
    }
}
