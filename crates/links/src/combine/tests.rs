use super::*;

#[test]
fn buckets_hold_a_hundred_flows_and_a_doubling_of_sizes() {
    let samples = |sizes: &[u64]| sizes.iter().map(|&bytes| (bytes, [Some(0.0); 2])).collect::<Vec<_>>();
    let sizes: Vec<u64> = (1..=1_000).collect();
    let buckets = buckets(samples(&sizes));
    let mut least = 1;
    for bucket in &buckets[..buckets.len() - 1] {
        assert!(bucket.each.len() >= FLOWS_MIN && bucket.bytes_max >= RANGE_MIN * least, "{}", bucket.bytes_max);
        least = bucket.bytes_max + 1;
    }
    assert_eq!(buckets.iter().map(|bucket| bucket.each.len()).sum::<usize>(), 1_000);
    assert_eq!(buckets.last().unwrap().bytes_max, u64::MAX);
}

#[test]
fn flows_of_one_size_share_a_bucket() {
    let sizes = vec![(1_000, [Some(1.0); 2]); 500];
    let buckets = buckets(sizes);
    assert_eq!(buckets.len(), 1);
    assert_eq!(buckets[0].each.len(), 500);
}
