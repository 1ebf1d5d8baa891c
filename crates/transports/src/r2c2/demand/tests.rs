use super::*;

#[test]
fn the_estimate_is_what_was_sent_and_what_waits_over_the_period() {
    let mut demand = Demand::default();
    demand.restart(Time::ZERO, 0);
    // 1,000 bytes sent and 250 waiting in 10 us are 1 Gbps.
    let first = demand.estimate(Time::from_us(10), 1_000, 250, 1.0, 1e10, 0.5).unwrap();
    assert!((first - 1e9).abs() < 1.0, "{first}");
    // Nothing more in the next: half of it.
    let second = demand.estimate(Time::from_us(20), 1_000, 0, 1.0, 1e10, 0.5).unwrap();
    assert!((second - 0.5e9).abs() < 1.0, "{second}");
    assert_eq!(demand.estimate(Time::from_us(20), 1_000, 0, 1.0, 1e10, 0.5), None);
}

#[test]
fn no_estimate_is_more_than_the_host_s_link_carries() {
    let mut demand = Demand::default();
    demand.restart(Time::ZERO, 0);
    let most = demand.estimate(Time::from_us(10), 0, 1_000_000, 1.0, 1e10, 0.5);
    assert_eq!(most, Some(1e10));
}

#[test]
fn an_estimate_is_news_where_rates_depend_on_it() {
    // Nothing announced: only what falls below the rate.
    assert!(is_news(0.9e9, f64::INFINITY, 1e9) && !is_news(0.97e9, f64::INFINITY, 1e9));
    // Held by what was announced: up and down.
    assert!(is_news(1.1e9, 1e9, 1e9) && is_news(0.9e9, 1e9, 1e9) && !is_news(1.04e9, 1e9, 1e9));
    // A rate from before what was announced last says nothing.
    assert!(!is_news(1.02e9, 1e9, 3e9) && is_news(0.9e9, 1e9, 3e9));
    // Held by the network at a tenth of that, or starved: more backlog changes nothing, a lower demand than the
    // rate does.
    assert!(!is_news(9e9, 1e9, 1e8) && !is_news(9e9, 1e9, 0.0) && is_news(0.5e8, 1e9, 1e8));
}
