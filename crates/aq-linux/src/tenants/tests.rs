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
fn a_packet_has_one_tenant_by_one_kind() {
    let two = |a: &str, b: &str, at: &str| {
        let asks = |at: &str| format!("request = [{{ share = {{ weight = 1 }}, position = \"{at}\" }}]");
        let (first, second) = (asks("egress"), asks(at));
        format!(
            "{LINK}\n[[entity]]\nname = \"a\"\nmatch = {{ {a} }}\n{first}\n\
             [[entity]]\nname = \"b\"\nmatch = {{ {b} }}\n{second}"
        )
    };
    for (a, b, wanted) in [
        ("ports = [\"80\"]", "ports = [\"80\"]", "entity[1].match.ports: port 80 is \"a\"'s too"),
        ("ports = [\"80-90\", \"1-2\"]", "ports = [\"70-80\"]", "entity[1].match.ports: port 80 is \"a\"'s"),
        ("ports = [\"1-9000\", \"20-30\"]", "ports = [\"8080\"]", "port 8080 is \"a\"'s too (1-9000 and 8080)"),
        ("source_ports = [\"53\"]", "source_ports = [\"53\"]", "match.source_ports"),
        ("mark = [7, 8]", "mark = [8]", "entity[1].match.mark: 8 is \"a\"'s too"),
        ("vlan = [7]", "vlan = [7]", "match.vlan"),
        ("cgroup = [\"/x/y\"]", "cgroup = [\"x//y/\"]", "match.cgroup: /x/y is"),
        ("source = [\"10.0.0.0/8\"]", "source = [\"10.0.0.0/8\"]", "match.source: 10.0.0.0/8"),
        ("destination = [\"::/0\"]", "destination = [\"::/0\"]", "match.destination"),
        (
            "mark = [1], portless = [\"10.0.0.0/8\"]",
            "mark = [2], portless = [\"10.0.0.0/8\"]",
            "match.portless: 10.0.0.0/8",
        ),
        ("portless = [\"10.0.0.0/8\"]", "mark = [2]", "entity[0].match.portless"),
    ] {
        let error = read(&two(a, b, "egress"), "t").expect_err(wanted);
        assert!(error.contains(wanted), "{error}\nwithout {wanted}");
    }
    // Ranges that touch, prefixes within prefixes, another kind, another position, and twice in one tenant.
    for (a, b, at) in [
        ("ports = [\"80-90\"]", "ports = [\"91\", \"70-79\"]", "egress"),
        ("ports = [\"80\"]", "source_ports = [\"80\"]", "egress"),
        ("source = [\"10.0.0.0/8\"]", "source = [\"10.0.0.0/9\"], destination = [\"10.0.0.0/8\"]", "egress"),
        ("ports = [\"80\"]", "ports = [\"80\"]", "ingress"),
        ("ports = [\"80\", \"79-81\"], mark = [1, 1]", "mark = [80]", "egress"),
    ] {
        read(&two(a, b, at), "t").unwrap();
    }
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
