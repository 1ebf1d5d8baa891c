use super::*;

const TEXT: &str = r#"
transport = "a"
transports = { a = "../a", b = { folder = "b" }, c = "c", d = "d", unused = "e" }
[[traffic]]
transport = { b = { x = 1 } }
[[traffic.resubmit]]
over = "c"
[[job]]
transport = "d"
[[traffic]]
transport = "udp"
"#;

fn found(text: &str, sets: &[(&str, &str)]) -> Vec<(String, String)> {
    let sets: Vec<_> = sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    outside(text, &sets).into_iter().collect()
}

#[test]
fn transports_are_found_wherever_they_are_used() {
    let pair = |name: &str, folder: &str| (name.to_owned(), folder.to_owned());
    assert_eq!(found(TEXT, &[]), [pair("a", "../a"), pair("b", "b"), pair("c", "c"), pair("d", "d")]);
    let sets = [("transport", "unused"), ("transports.b", "elsewhere"), ("traffic.1.transport", "a")];
    let with = [pair("a", "../a"), pair("b", "elsewhere"), pair("c", "c"), pair("d", "d"), pair("unused", "e")];
    assert_eq!(found(TEXT, &sets), with);
    assert_eq!(found("[live.sockets.x]\ntransport = 'a'\n[transports]\na = 'a'", &[]), [pair("a", "a")]);
}

#[test]
fn what_is_wrong_is_left_to_the_reader() {
    assert!(found("transport = 'a'\ntransport = 'b'", &[]).is_empty());
    assert!(found("transport = 'a'\ntransports = 3\ntraffic = 'x'\njob = [1]", &[("x.y", "]")]).is_empty());
    assert!(found("transport = 'a'\ntransports = { a = 3 }", &[]).is_empty());
}

#[test]
fn a_table_of_crates_is_read_checked_and_written() {
    let text = "transports = { mine = '../mine' }\n[[traffic]]\nsizes = { constant = '1B' }\narrivals = 'all_at_once'";
    let mut scenario = crate::read(text, "x", &[]).expect("nothing uses it");
    assert_eq!(scenario.transports["mine"], CrateSpec { folder: "../mine".to_owned(), digest: None });
    scenario.load_crates(&Crates::from([("mine".to_owned(), "ab".to_owned())])).expect("none was given");
    let written = scenario.to_toml();
    assert!(written.contains("[transports.mine]\nfolder = \"../mine\"\ndigest = \"ab\"\n"), "{written}");
    let mut again = crate::read(&written, "x", &[]).expect("what was written");
    assert_eq!(again, scenario);
    let other = again.load_crates(&Crates::from([("mine".to_owned(), "cd".to_owned())])).expect_err("changed");
    assert_eq!(other.key, "transports.mine.digest");

    let refused =
        |of: &str| crate::read(&text.replace("mine = '../mine'", of), "x", &[]).expect_err("refused").to_string();
    assert!(refused("dcpim = 'x'").starts_with("x:1: transports.dcpim: is the name of one of Clearway's own"));
    assert!(refused("mine = ''").starts_with("x:1: transports.mine: names no folder"));
    assert!(
        refused("mine = 3").starts_with("x:1: transports.mine: expected the folder of a crate"),
        "{}",
        refused("mine = 3")
    );
}

#[test]
fn a_transport_that_is_replaced_need_not_be_known() {
    let text = "transport = 'mine'\ntransports = { mine = 'x' }\n[[traffic]]\nsizes = { constant = '1B' }\narrivals = \
                'all_at_once'";
    let set = |key: &str, value: &str| [(key.to_owned(), value.to_owned())];
    assert!(crate::read(text, "x", &[]).is_err());
    assert!(crate::read(text, "x", &set("seed", "2")).is_err());
    let replaced = crate::read(text, "x", &set("transport", "udp")).expect("nothing else is wrong");
    assert_eq!(replaced.transport.name(), "udp");
    // Other mistakes of a text are mistakes still.
    let known = text.replace("'mine'\n", "'udpp'\n");
    assert!(crate::read(&known, "x", &set("transport", "udp")).expect_err("refused").to_string().starts_with("x:1:"));
}
