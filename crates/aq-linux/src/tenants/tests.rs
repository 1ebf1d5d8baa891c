use super::*;

/// A file with these lines in one tenant, and these before all.
fn file(before: &str, tenant: &str) -> String {
    format!("{before}\n[[entity]]\nname = \"a\"\nmatch = {{ mark = [1] }}\n{tenant}")
}

const LINK: &str = "link = { capacity = \"1Gbps\" }";
const ASKS: &str = "request = [{ share = { weight = 1 }, position = \"egress\" }]";

#[test]
fn the_shipped_example_is_read_and_granted() {
    let text = include_str!("../../../../examples/aq-linux/tenants.toml");
    let tenants = read(text, "tenants.toml").unwrap();
    assert!(tenants.entity.len() >= 3);
    for position in tenants.positions() {
        let grants = crate::Grants::new(&tenants, position, crate::grants::Senders::USUAL).unwrap();
        let sum: u64 = grants.rows().iter().map(|row| row.rate.bps()).sum();
        assert!(sum <= tenants.link.capacity.bps() + grants.rows().len() as u64);
    }
    assert!(text.lines().filter(|line| line.contains('#')).count() > 15, "it is commented");
}

#[test]
fn a_wrong_file_is_refused_with_place_and_remedy() {
    read(&file(LINK, ASKS), "t").unwrap();
    for (before, tenant, wanted) in [
        ("", ASKS, "link"),
        ("link = { capacity = \"1Gbps\", rtt = \"0s\" }", ASKS, "link.rtt"),
        ("link = { capacity = \"1bps\" }", ASKS, "link.capacity"),
        ("link = { capacity = \"1Gbps\", burst = \"1KB\" }", ASKS, "link.mtu"),
        ("link = { capacity = \"1Gbps\", queue = \"1KB\" }", ASKS, "link.queue"),
        ("link = { capacity = \"1Gbps\", qeue = \"1MB\" }", ASKS, "qeue"),
        ("sharing = \"rate_limiter\"\nlink = { capacity = \"1Gbps\" }", ASKS, "sharing"),
        ("sharing = { aq = { work_conserving = \"bypass\" } }\nlink = { capacity = \"1Gbps\" }", ASKS, "reallocate"),
        ("sharing = { aq = { idle_after = \"1ms\" } }\nlink = { capacity = \"1Gbps\" }", ASKS, "idle_after"),
        ("sharing = { aq = { headroom = 1.5 } }\nlink = { capacity = \"1Gbps\" }", ASKS, "sharing.aq.headroom"),
        (LINK, "", "request"),
        (LINK, "request = []", "entity[0].request"),
        (LINK, "flows = 3\nrequest = [{ share = { weight = 1 }, position = \"egress\" }]", "flows"),
        (LINK, "each = \"flow\"\nrequest = [{ share = { weight = 1 }, position = \"egress\" }]", "flows"),
        (LINK, "each = \"host\"\nrequest = [{ share = { weight = 1 }, position = \"egress\" }]", "each"),
        (
            LINK,
            "request = [{ share = { weight = 1 }, position = \"egress\", link = [\"a\", \"b\"] }]",
            "request[0].link",
        ),
        (LINK, "feedback = \"delay\"\nrequest = [{ share = { weight = 1 }, position = \"egress\" }]", "feedback"),
        (LINK, "request = [{ share = { wait = 1 }, position = \"egress\" }]", "wait"),
        (LINK, &format!("{ASKS}\n[[entity]]\nname = \"a\"\nmatch = {{ mark = [2] }}\n{ASKS}"), "twice"),
        (LINK, &format!("{ASKS}\n[[entity]]\nname = \"b\"\nmatch = {{ mark = [0] }}\n{ASKS}"), "match.mark"),
        (LINK, &format!("{ASKS}\n[[entity]]\nname = \"b\"\nmatch = {{}}\n{ASKS}"), "match"),
        (LINK, &format!("{ASKS}\n[[entity]]\nname = \"b\"\nmatch = {{ ports = [\"9-8\"] }}\n{ASKS}"), "9-8"),
    ] {
        let error = read(&file(before, tenant), "tenants.toml").expect_err(wanted);
        assert!(error.starts_with("tenants.toml") && error.contains(wanted), "{error}\nwithout {wanted}");
    }
}

#[test]
fn no_bytes_make_it_panic() {
    let whole = include_str!("../../../../examples/aq-linux/tenants.toml");
    for cut in (0..whole.len()).filter(|&cut| whole.is_char_boundary(cut)).step_by(7) {
        let _ = read(&whole[..cut], "t");
        let _ = read(&whole[cut..], "t");
    }
}
