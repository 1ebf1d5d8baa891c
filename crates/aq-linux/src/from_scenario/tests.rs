use super::*;
use crate::grants::{Grants, Senders};

/// Two entities on the link of a dumbbell, and on hosts' own where `hosts` says so.
fn scenario(sharing: &str, first: &str, second: &str) -> Scenario {
    let text = format!(
        "name = \"two\"\n{sharing}\n[fabric.dumbbell]\nhosts_per_side = 4\nhost_rate = \"10Gbps\"\n\
         bottleneck_rate = \"1Gbps\"\n\
         [[entity]]\nname = \"A\"\ntraffic = [\"a\"]\n{first}\n[[entity]]\nname = \"B\"\ntraffic = [\"b\"]\n{second}\n\
         [[traffic]]\nname = \"a\"\ntransport = \"cubic\"\nsizes = {{ constant = \"1MB\" }}\nsenders = \"0-2\"\n\
         pattern = {{ stride = {{ by = 4 }} }}\narrivals = \"all_at_once\"\n\
         [[traffic]]\nname = \"b\"\ntransport = \"dctcp\"\nsizes = {{ constant = \"1MB\" }}\nsenders = \"3\"\n\
         pattern = {{ stride = {{ by = 4 }} }}\narrivals = \"all_at_once\"\n"
    );
    scenario::read(&text, "two.toml", &[]).unwrap()
}

const AQ: &str = "sharing = { aq = { headroom = 0.02, idle_after = \"0s\" } }";
const ONE: &str = "request = [{ share = { weight = 1 }, link = [\"left\", \"right\"], position = \"ingress\" }]";
const THREE: &str = "request = [{ share = { weight = 3 }, link = [\"left\", \"right\"], position = \"ingress\" }]";

fn given() -> BTreeMap<String, Matches> {
    matches(&["A=cgroup:/a".to_owned(), "B=ports:5201,8000-8099".to_owned(), "B=mark:7".to_owned()]).unwrap()
}

#[test]
fn a_scenarios_entities_are_granted_what_they_were_in_it() {
    let taken = tenants(&scenario(AQ, ONE, THREE), &given(), None).unwrap();
    assert_eq!(taken.tenants.link.capacity.bps(), 1_000_000_000);
    let [a, b] = &taken.tenants.entity[..] else { panic!("{:?}", taken.tenants.entity) };
    assert_eq!((a.transport.name(), a.senders, b.transport.name(), b.senders), ("cubic", 3, "dctcp", 1));
    assert_eq!((b.matches.mark.len(), b.matches.ports.len()), (1, 2));
    let grants = Grants::new(&taken.tenants, Position::Egress, Senders::USUAL).unwrap();
    let rates: Vec<u64> = grants.rows().iter().map(|row| (row.rate.bps() + 500) / 1_000).collect();
    assert_eq!(rates, [0, 245_000, 735_000]);
    assert!(grants.rows()[2].threshold.is_some(), "DCTCP listens to marks");
    // As a file it says the same.
    let text = toml::to_string(&taken.tenants).unwrap();
    assert_eq!(crate::tenants::read(&text, "written").unwrap(), taken.tenants);
}

#[test]
fn the_other_way_of_the_link_comes_in() {
    let back = "request = [{ share = { weight = 1 }, link = [\"right\", \"left\"], position = \"ingress\" }]";
    let both = scenario(AQ, ONE, back);
    let asks = |link| {
        let taken = tenants(&both, &given(), link).unwrap();
        taken.tenants.entity.iter().map(|tenant| tenant.request[0].position).collect::<Vec<_>>()
    };
    assert_eq!(asks(None), [Position::Egress, Position::Ingress]);
    assert_eq!(asks(Some(("right", "left"))), [Position::Ingress, Position::Egress]);
}

#[test]
fn what_a_kernel_can_not_do_is_refused_with_its_place() {
    let refused = |sharing: &str, first: &str, given: &[&str], wanted: &str| {
        let given: Vec<String> = given.iter().map(|&text| text.to_owned()).collect();
        let given = matches(&given).unwrap();
        let problem = tenants(&scenario(sharing, first, THREE), &given, None).unwrap_err().to_string();
        assert!(problem.contains(wanted), "{problem}\nwithout {wanted}");
    };
    let both = ["A=mark:1", "B=mark:2"];
    refused("", ONE, &both, "sharing");
    refused(AQ, ONE, &["A=mark:1"], "--match B=");
    refused(AQ, ONE, &["A=mark:1", "B=mark:2", "C=mark:3"], "no entity \"C\"");
    refused("sharing = { aq = { work_conserving = \"bypass\" } }", ONE, &both, "bypass");
    for (text, wanted) in [
        ("A", "no entity"),
        ("A=x", "no kind"),
        ("A=x:1", "cgroup, mark"),
        ("A=mark:x", "number"),
        ("A=ports:9-8", "9-8"),
    ] {
        assert!(matches(&[text.to_owned()]).unwrap_err().contains(wanted), "{text}");
    }
}
