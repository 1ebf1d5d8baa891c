use super::*;
use crate::tenants::read;

fn tenants(settings: &str, shares: &[&str]) -> Tenants {
    let mut text = format!("{settings}\n[link]\ncapacity = \"1Gbps\"\n");
    for (index, share) in shares.iter().enumerate() {
        text += &format!("[[entity]]\nname = \"t{index}\"\nmatch = {{ mark = [{}] }}\n", index + 1);
        text += &format!("request = [{{ share = {share}, position = \"egress\" }}]\n");
    }
    read(&text, "tenants.toml").unwrap()
}

fn rates(grants: &Grants) -> Vec<u64> {
    // A row's rate is a 24-bit float.
    grants.rows().iter().map(|row| (row.rate.bps() + 500) / 1_000).collect()
}

fn granted(settings: &str, shares: &[&str]) -> Grants {
    Grants::new(&tenants(settings, shares), Position::Egress, Senders::USUAL).unwrap()
}

#[test]
fn weights_share_what_absolute_requests_leave() {
    let grants = granted("", &["{ absolute = \"200Mbps\" }", "{ weight = 1 }", "{ weight = 3 }"]);
    assert_eq!(rates(&grants), [0, 200_000, 200_000, 600_000]);
    assert_eq!(grants.rows()[0].word(), Word::OPEN, "packets of nobody pass");
    let grants = granted("sharing = { aq = { untagged = { weight = 1 }, headroom = 0.2 } }", &["{ weight = 3 }"]);
    assert_eq!(rates(&grants), [200_000, 600_000]);
}

#[test]
fn a_request_that_does_not_fit_is_declined_with_the_reason() {
    let asked = tenants("", &["{ absolute = \"800Mbps\" }", "{ absolute = \"300Mbps\" }"]);
    let problem = Grants::new(&asked, Position::Egress, Senders::USUAL).unwrap_err();
    assert_eq!(problem.key, "entity[1].request[0]");
    assert!(problem.message.contains("declined") && problem.message.contains("200Mbps"), "{problem}");
    let asked = tenants("", &["{ absolute = \"999.99Mbps\" }", "{ weight = 1 }"]);
    let problem = Grants::new(&asked, Position::Egress, Senders::USUAL).unwrap_err();
    assert!(problem.message.contains("64Kbps"), "{problem}");
}

#[test]
fn idle_shares_are_lent_and_never_below_the_guarantee() {
    let settings = "sharing = { aq = { work_conserving = { reallocate = { period = \"100ms\", headroom = 0.1 } } } }";
    let asked = tenants(settings, &["{ weight = 1 }", "{ weight = 3 }"]);
    let mut grants = Grants::new(&asked, Position::Egress, Senders::USUAL).unwrap();
    assert_eq!(rates(&grants), [0, 250_000, 750_000]);
    // The first uses all it has, the second nothing.
    grants.divide(&asked, Duration::from_ms(100), &[0, 3_125_000, 0]);
    let lent = rates(&grants);
    assert!(lent[1] > 900_000 && lent[2] == 750_000, "{lent:?}");
    // Both want all: back to the guarantees.
    grants.divide(&asked, Duration::from_ms(100), &[0, 12_500_000, 9_375_000]);
    assert_eq!(rates(&grants), [0, 250_000, 750_000]);
}

#[test]
fn flows_have_an_aq_each() {
    let mut asked = tenants("", &["{ weight = 1 }", "{ weight = 1 }"]);
    asked.entity[0].each = scenario::Each::Flow;
    asked.entity[0].flows = Some(9);
    let grants = Grants::new(&asked, Position::Egress, Senders::USUAL).unwrap();
    assert_eq!(rates(&grants), [0, 900_000, 100_000]);
    let (of_flows, of_one) = (grants.rows()[1].word(), grants.rows()[2].word());
    assert!(of_flows.per_byte.abs_diff(of_one.per_byte) * 1_000_000 <= of_one.per_byte * 2, "each has 100 Mbps");
    assert_eq!(grants.rows()[1].limit, grants.rows()[2].limit);
}

#[test]
fn a_small_share_has_a_small_limit() {
    let settings = "sharing = { aq = { headroom = 0.02 } }";
    let mut asked = tenants(settings, &["{ weight = 1 }", "{ weight = 9 }", "{ absolute = \"400Mbps\" }"]);
    asked.entity[0].request[0].share = Share::Absolute(Rate::from_bps(2_000_000));
    asked.link.timeout = Some(Duration::from_ms(5));
    let grants = Grants::new(&asked, Position::Egress, Senders::USUAL).unwrap();
    let ahead_ms = |row: &Row| row.rate.transmit(row.limit.get()).ps() / 1_000_000_000;
    for row in &grants.rows()[1..] {
        assert!(ahead_ms(row) < 150, "{} runs {} ms ahead", row.name, ahead_ms(row));
        // Eight packets of as many segments as such a sender makes, and what it loses while it waits for its timer.
        let waited = row.rate.bytes_in(Duration::from_ms(15));
        let burst = if row.rate < Rate::from_bps(3_000_000) { 2 * 1_514 } else { 65_536 };
        assert!(row.limit.get() >= waited + 8 * burst, "{}: {}", row.name, row.limit);
    }
}

#[test]
fn what_can_hardly_work_is_said() {
    let settings = "sharing = { aq = { limit = { fixed = { bytes = \"100KB\" } } } }";
    let grants = granted(settings, &["{ weight = 1 }"]);
    assert!(grants.warnings.iter().any(|warning| warning.contains("four full packets")), "{:?}", grants.warnings);
    assert!(granted("", &["{ weight = 1 }"]).warnings.iter().any(|warning| warning.starts_with("link.timeout")));
    // 1 Gbps over 40 ms: B is 5 MB, B^2 / (18 M) 917 MB, and no limit is above 16 MB. Over 1 ms it is 573 KB.
    for (rtt_ms, warned) in [(40, true), (1, false)] {
        let mut long = tenants("", &["{ weight = 1 }"]);
        long.link.timeout = Some(Duration::from_ms(5));
        long.link.rtt = Some(Duration::from_ms(rtt_ms));
        let grants = Grants::new(&long, Position::Egress, Senders::USUAL).unwrap();
        let said = grants.warnings.iter().any(|warning| warning.contains("B^2/(18 M) = 917"));
        assert_eq!(said, warned, "{:?}", grants.warnings);
    }
    let mut marked = tenants("", &["{ weight = 1 }"]);
    marked.entity[0].transport = catalogue::Transport::named("dctcp").unwrap();
    marked.link.timeout = Some(Duration::from_ms(5));
    let grants = Grants::new(&marked, Position::Egress, Senders::USUAL).unwrap();
    assert!(grants.warnings.is_empty(), "{:?}", grants.warnings);
    assert!(grants.rows()[1].threshold.is_some_and(|threshold| threshold < grants.rows()[1].limit));
}
