use super::*;

fn intro() -> Intro {
    Intro { build: "0.1.0, commit 5".to_owned(), port: 7770, scenario: Some("seed = 1\nload = 2\n".to_owned()) }
}

#[test]
fn what_is_said_is_understood() {
    for intro in [intro(), Intro { scenario: None, ..intro() }] {
        assert_eq!(Intro::parse(&intro.emit()), Ok(intro));
    }
    let setup = Setup { machine: 2, machines: 3, programs: true, scenario: "seed = 1".to_owned() };
    assert_eq!(Setup::parse(&setup.emit()), Ok(setup.clone()));
    let others = ["10.0.0.2:5", "[::1]:6"].map(|text| text.parse().expect("an address")).to_vec();
    let go = Go { session: [7; 32], port: 9, others };
    assert_eq!(Go::parse(&go.emit()), Ok(go));
    for (machine, machines) in [(0, 2), (2, 2), (3, 2), (1, 65), (u32::MAX, u32::MAX)] {
        assert!(Setup::parse(&Setup { machine, machines, ..setup.clone() }.emit()).is_err());
    }
}

#[test]
fn nonsense_is_an_error() {
    let (intro, go) = (intro().emit(), Go { session: [7; 32], port: 9, others: Vec::new() }.emit());
    for length in 0..intro.len() {
        assert!(Intro::parse(&intro[..length]).is_err(), "{length}");
    }
    assert!(Intro::parse(&[&intro[..], &[0]].concat()).is_err());
    assert!(Intro::parse(&[0xFF; 100]).is_err() && Go::parse(&[0xFF; 100]).is_err() && Setup::parse(&[9; 9]).is_err());
    assert!(Go::parse(&go[..go.len() - 1]).is_err());
}

/// A commit says nothing of edits.
#[test]
fn edited_sources_of_one_commit_are_told_apart() {
    let built = |source: &str| build(&format!("version 0.1.0, commit 5, source {source}"));
    let intro = Intro { build: built("aa"), port: 1, scenario: None };
    assert_eq!(intro.check(&built("aa"), ""), Ok(()));
    let said = intro.check(&built("bb"), "").expect_err("they differ");
    assert!(said.contains("source bb,") && said.contains("source aa,") && said.contains("in: source;"), "{said}");
}

#[test]
fn other_builds_and_scenarios_are_named() {
    let said = |intro: &Intro| intro.check("0.1.0, commit 5", "seed = 1\nload = 2\n").err().unwrap_or_default();
    assert_eq!(said(&intro()), "");
    assert_eq!(said(&Intro { scenario: None, ..intro() }), "");
    let other = said(&Intro { build: "0.1.0, commit 6".to_owned(), ..intro() });
    assert!(other.contains("commit 5, the other of 0.1.0, commit 6"), "{other}");
    assert!(other.contains("in: commit;"), "{other}");
    let other = said(&Intro { scenario: Some("seed = 1\nload = 3\n".to_owned()), ..intro() });
    assert!(other.contains("`load = 2` where the other has `load = 3`"), "{other}");
    let other = said(&Intro { scenario: Some("seed = 1\n".to_owned()), ..intro() });
    assert!(other.contains("lines that the other has not"), "{other}");
}
