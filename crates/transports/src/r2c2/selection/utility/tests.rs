use super::*;

fn hosts(ids: &[u32]) -> Vec<HostId> {
    ids.iter().copied().map(HostId).collect()
}

#[test]
fn aggregate_is_the_sum_and_tails_are_nearest_ranks() {
    let rates = [4.0, 1.0, 3.0, 2.0];
    let of = |utility: &Utility| utility.measure(&hosts(&[0, 1, 2, 3])).of(&rates);
    let tail = |percentile| Utility::Tail(Tail { percentile });
    assert_eq!(of(&Utility::Aggregate), 10.0);
    assert_eq!([0.0, 1.0, 25.0, 26.0, 50.0, 100.0].map(|p| of(&tail(p))), [1.0, 1.0, 1.0, 2.0, 2.0, 4.0]);
    assert_eq!(Utility::Aggregate.measure(&[]).of(&[]), 0.0);
    assert_eq!(tail(1.0).measure(&[]).of(&[]), 0.0);
}

#[test]
fn a_tenant_has_the_flows_of_its_hosts() {
    let tenants = |percentile| Utility::Tenants(Tenants { hosts: vec![vec![0, 1], vec![9], vec![2]], percentile });
    // Host 3 has no tenant, and the second tenant has no flow.
    let of = |percentile| tenants(percentile).measure(&hosts(&[0, 2, 1, 3])).of(&[1.0, 4.0, 2.0, 0.5]);
    assert_eq!([of(0.0), of(100.0)], [3.0, 4.0]);
}

#[test]
fn says_what_is_wrong_and_where() {
    let problem = |toml_like: Utility| toml_like.check(4).unwrap_err().to_string();
    let tenants = |hosts: Vec<Vec<u32>>| Utility::Tenants(Tenants { hosts, percentile: 0.0 });
    assert_eq!(problem(Utility::Tail(Tail { percentile: 101.0 })), "tail.percentile: is 101; it must be from 0 to 100");
    assert_eq!(
        problem(tenants(vec![vec![0], vec![1, 4]])),
        "tenants.hosts[1][1]: is host 4; the fabric has 4, counted from 0"
    );
    assert_eq!(
        problem(tenants(vec![vec![0], vec![1, 0]])),
        "tenants.hosts[1][1]: is host 0, which hosts[0] names too; give each host to one tenant"
    );
    assert_eq!(tenants(vec![vec![0, 3], vec![]]).check(4), Ok(()));
}
