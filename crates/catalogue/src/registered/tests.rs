use contract::{About, Capabilities, Family, HeaderFormat, NetworkView, SwitchRequirements, headers_of};
use node::{Balancing, Endpoint, EndpointParams};
use serde::Deserialize;
use units::Duration;

use super::*;

/// UDP under another name, with settings of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Config {
    window: u32,
    timers: Timers,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Timers {
    again: Duration,
}

impl Default for Config {
    fn default() -> Config {
        Config { window: 16, timers: Timers { again: Duration::from_us(5) } }
    }
}

impl Scheme for Config {
    fn about(&self) -> About {
        About { title: "A registered one", source: "", summary: "", needs: "nothing" }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::of_hosts(Family::Reactive)
    }

    fn headers(&self) -> &'static dyn HeaderFormat {
        headers_of::<transports::udp::Header>()
    }

    fn check(&self) -> Result<(), Problem> {
        if self.window == 0 { Err(Problem::new("window", "at 0 nothing would be sent")) } else { Ok(()) }
    }

    fn endpoint(&self, site: &EndpointParams, network: &NetworkView) -> Box<dyn Endpoint> {
        transports::udp::Config::default().endpoint(site, network)
    }

    fn requirements(&self, _: &EndpointParams) -> SwitchRequirements {
        SwitchRequirements::only(Balancing::Ecmp)
    }
}

#[derive(Debug, Deserialize, Serialize)]
struct Said {
    transport: Transport,
}

/// The list is the process's: tests of one process register the one name once.
fn read(text: &str) -> Result<Transport, toml::de::Error> {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| register::<Config>("mine").expect("a good name"));
    toml::from_str::<Said>(text).map(|said| said.transport)
}

#[test]
fn a_registered_name_is_read_checked_and_written_like_those_of_the_list() {
    let plain = read("transport = 'mine'").expect("a name");
    assert_eq!(plain, read("transport = { mine = {} }").expect("a table"));
    assert_eq!(plain, read("[transport.mine]\nwindow = 16").expect("its default"));
    assert_eq!((plain.name(), plain.check(), plain.misread()), ("mine", Ok(()), None));
    assert_eq!(plain.as_scheme().about().title, "A registered one");
    let four = read("transport = { mine = { window = 4, timers = { again = '7us' } } }").expect("settings");
    assert_ne!(plain, four);
    let written = toml::to_string(&Said { transport: four.clone() }).expect("it can be written");
    assert_eq!(written, "[transport.mine]\nwindow = 4\n\n[transport.mine.timers]\nagain = \"7us\"\n");
    assert_eq!(read(&written).expect("what was written"), four);
    let zero = read("transport = { mine = { window = 0 } }").expect("its types allow it");
    assert_eq!(zero.check().expect_err("its check does not").key, "mine.window");
    let schema = serde_json::to_string(&schemars::schema_for!(Transport)).expect("JSON");
    assert!(schema.contains(r#""properties":{"mine":{"#), "{schema}");
}

#[test]
fn wrong_settings_are_a_problem_that_names_their_key() {
    let wrong = |text: &str| read(text).expect("the rest is right").misread().expect("and this is wrong");
    let unknown = wrong("transport = { mine = { windw = 4 } }");
    assert_eq!(
        (&*unknown.key, &*unknown.message),
        ("mine.windw", "unknown field `windw`, expected `window` or `timers`")
    );
    let inner = wrong("transport = { mine = { timers = { again = 'soon' } } }");
    assert_eq!(inner.key, "mine.timers.again");
    let kind = wrong("transport = { mine = { window = 'x' } }");
    assert_eq!((&*kind.key, &*kind.message), ("mine.window", "invalid type: string \"x\", expected u32"));
    assert_eq!(wrong("transport = { mine = 3 }").key, "mine");
}

#[test]
fn the_list_is_read_as_before_beside_it() {
    let dcpim = read("transport = { dcpim = { rounds = 3 } }").expect("of the list");
    assert_eq!(dcpim.name(), "dcpim");
    assert_eq!(read("transport = 'udp'").expect("of the list").name(), "udp");
    assert_eq!(read("transport = { custom = { module = 'x.wasm' } }").expect("of the list").name(), "custom");
    let refused = |text: &str| read(text).expect_err("refused");
    let names = |error: &toml::de::Error| error.message().contains("`dcpim`") && error.message().contains("`mine`");
    for text in ["transport = 'mein'", "transport = { mein = {} }"] {
        let error = refused(text);
        assert!(error.message().starts_with("unknown variant `mein`, expected one of ") && names(&error), "{error}");
        assert_eq!(
            error.span().map(|span| &text[span]),
            Some(text.split([' ', '}']).find(|of| of.contains("mein")).unwrap())
        );
    }
    let span = refused("transport = { dcpim = { runds = 3 } }").span();
    assert_eq!(span, Some(24..29));
    assert!(refused("transport = { mine = {}, udp = {} }").message().contains("only one can be chosen"));
    refused("transport = {}");
    assert!(refused("transport = 3").message().contains("expected a transport's name, or a table with one"));
}

#[test]
fn names_that_are_taken_or_none_are_refused() {
    read("transport = 'mine'").expect("registered");
    let refused = |name| register::<Config>(name).expect_err("refused").message;
    assert!(refused("mine").contains("two transports of this name"));
    assert!(refused("dcpim").contains("Clearway's own"));
    assert!(refused("custom").contains("Clearway's own"));
    assert!(refused("").contains("1 to 64 signs"));
    assert!(refused("9lives").contains("begins with a small letter"));
    assert!(refused("my-own").contains("has '-'"));
    assert_eq!(registered(), ["mine"]);
}
