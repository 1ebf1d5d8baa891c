use super::*;

const CHAINED: &str = r#"{ "cniVersion": "1.0.0", "name": "net", "type": "clearway-aq",
  "prevResult": { "cniVersion": "1.0.0", "interfaces": [], "ips": [{ "address": "10.1.2.3/24" }] } }"#;

fn variables(command: &str) -> Variables {
    Variables {
        command: command.to_owned(),
        container: "c1".to_owned(),
        netns: "/run/netns/absent".to_owned(),
        device: "eth0".to_owned(),
        arguments: "IgnoreUnknown=1;K8S_POD_NAMESPACE=web;K8S_POD_NAME=front-7".to_owned(),
    }
}

/// No test here touches a device.
fn run(command: &str, text: &str) -> Value {
    let folder = std::env::temp_dir().join(format!("clearway-aq-cni-{}", std::process::id()));
    let roots = Roots { pins: folder.clone(), run: folder };
    serde_json::from_str(&answer(act(&roots, &variables(command), text), text).0).unwrap_or_default()
}

#[test]
fn it_says_which_versions_it_has() {
    let said = run("VERSION", r#"{ "cniVersion": "1.0.0" }"#);
    assert_eq!(said["cniVersion"], "1.0.0");
    assert_eq!(said["supportedVersions"], json!(VERSIONS));
}

#[test]
fn without_rates_the_result_goes_on_as_it_is() {
    let asked: Value = serde_json::from_str(CHAINED).unwrap();
    assert_eq!(run("ADD", CHAINED), asked["prevResult"]);
    // Nothing was given, so nothing lacks, and there is nothing to take.
    for command in ["CHECK", "DEL"] {
        let version = CHAINED.replace("1.0.0", "1.1.0");
        assert_eq!(run(command, &version), Value::Null, "{command}");
    }
    assert_eq!(run("GC", &CHAINED.replace("1.0.0", "1.1.0")), Value::Null);
}

#[test]
fn what_is_wrong_has_a_number_and_a_reason() {
    let with = |keys: &str| CHAINED.replacen("\"type\"", &format!("{keys}, \"type\""), 1);
    for (command, text, code, why) in [
        ("ADD", "{".to_owned(), DECODING, "EOF"),
        ("ADD", CHAINED.replace("1.0.0", "9.0.0"), VERSION, "is none of 0.3.0"),
        ("ADD", CHAINED.replace("prevResult", "other"), CONFIGURATION, "no prevResult"),
        ("ADD", with("\"ingressRate\": \"fast\""), DECODING, "the configuration"),
        ("ADD", with("\"aq\": { \"wait\": 1 }"), DECODING, "wait"),
        ("ADD", with("\"aq\": { \"weight\": 1 }"), CONFIGURATION, "needs aq.device"),
        ("ADD", with("\"unshapedSubnets\": [\"10.0.0.0/8\"]"), CONFIGURATION, "unshapedSubnets"),
        ("ADD", with("\"ingressRate\": 1000000"), FAILED, "/run/netns/absent"),
        ("GC", CHAINED.to_owned(), ENVIRONMENT, "no command \"GC\""),
        ("STEAL", CHAINED.to_owned(), ENVIRONMENT, "no command \"STEAL\""),
    ] {
        let said = run(command, &text);
        assert_eq!(said["code"], json!(code), "{said}");
        assert!(said["msg"].as_str().unwrap().contains(why), "{said}");
    }
}

#[test]
fn a_runtimes_rates_and_weight_come_before_the_configurations() {
    let text = r#"{ "cniVersion": "1.0.0", "name": "net", "ingressRate": 1, "egressRate": 2,
        "aq": { "weight": 1, "device": "eth0", "capacity": "10Gbps" },
        "runtimeConfig": { "bandwidth": { "ingressRate": 8000000, "ingressBurst": 2147483647 },
                           "aq": { "weight": 3 } } }"#;
    let config: Config = serde_json::from_str(text).unwrap();
    let wish = config.wish().unwrap();
    assert_eq!((wish.ingress, wish.egress), (Some(Rate::from_bps(8_000_000)), None));
    let shared = Shared { device: "eth0".to_owned(), capacity: Rate::from_bps(10_000_000_000), headroom: 0.02 };
    assert_eq!(wish.weight, Some((3, shared)));
    let container = config.container(&variables("ADD")).unwrap();
    assert_eq!((container.owner.as_str(), container.name.as_str()), ("cni:net/c1/eth0", "web/front-7/eth0"));
}
