use super::*;

fn line() -> Line {
    Line {
        device: "eth0".to_owned(),
        netns: None,
        position: "egress",
        tenant: "a \"b\"".to_owned(),
        share: "weight 3".to_owned(),
        allocated_bps: 750_000_000,
        passed_bps: 749_600_000,
        arrived_bps: 800_000_000,
        packets: 99,
        bytes: 1_000,
        drops: 1,
        dropped_bytes: 10,
        marks: 0,
        queue_us: 12.3,
        limit_bytes: 100,
        hidden: 0,
        enforcing: Some(true),
        trouble: None,
        escaped_bytes: None,
        kept: false,
        heals: 0,
        healed: None,
        alone: false,
    }
}

#[test]
fn a_table_has_its_columns_under_their_heads() {
    let text = table(&[line()]);
    let rows: Vec<&str> = text.lines().collect();
    assert_eq!(rows.len(), 2);
    let end = |row: &str, word: &str| row.find(word).map(|at| at + word.len());
    assert_eq!(end(rows[0], "allocated"), end(rows[1], "750.0Mbps"));
    assert_eq!(end(rows[0], "dropped"), end(rows[1], "1.00%"));
}

#[test]
fn prometheus_text_quotes_names() {
    let text = prometheus(&[line()]);
    assert!(text.contains("clearway_aq_drops_total{device=\"eth0\",position=\"egress\",tenant=\"a \\\"b\\\"\"} 1\n"));
    assert_eq!(text.lines().filter(|line| line.starts_with("# TYPE")).count(), 12);
    let kept = Line { escaped_bytes: Some(7), kept: true, heals: 2, ..line() };
    let text = prometheus(&[kept.clone(), kept]);
    assert_eq!(text.matches("clearway_aq_escaped_bytes_total{device=\"eth0\",position=\"egress\"} 7\n").count(), 1);
    assert_eq!(text.matches("clearway_aq_heals_total{device=\"eth0\",position=\"egress\"} 2\n").count(), 1);
}

#[test]
fn what_is_wrong_is_said_once_under_the_table() {
    let wrong = |tenant: &str| Line {
        tenant: tenant.to_owned(),
        enforcing: Some(false),
        trouble: Some("its filter was removed".to_owned()),
        ..line()
    };
    let text = table(&[wrong("a"), wrong("b"), Line { hidden: 7, ..line() }]);
    assert_eq!(text.matches("eth0 egress: NOT ENFORCED: its filter was removed").count(), 1, "{text}");
    assert!(text.contains("7 packets of"), "{text}");
    let text = table(&[Line { alone: true, ..wrong("a") }, Line { alone: true, ..wrong("b") }]);
    assert!(text.contains("egress: a: NOT ENFORCED: its") && text.contains("egress: b: NOT ENFORCED: its"), "{text}");
    assert!(
        prometheus(&[wrong("a")])
            .contains("clearway_aq_enforcing{device=\"eth0\",position=\"egress\",tenant=\"a\"} 0\n")
    );
}
