use super::*;

const TENANTS: &str = "[link]\ncapacity = \"1Gbps\"\n[[entity]]\nname = \"a\"\nmatch = { ports = [\"80\"] }\n\
                       request = [{ share = { weight = 1 }, position = \"egress\" }]\n";
const INLINE: &str = "link = { capacity = \"1Gbps\" }\nentity = [{ name = \"a\", match = { ports = [\"80\"] }, \
                      request = [{ share = { weight = 1 }, position = \"egress\" }] }]\n";

fn parse(text: &str) -> Result<Config, String> {
    Config::parse(text, "aqd.toml", |path| match path.to_str() {
        Some("a.toml") => Ok((path.to_owned(), TENANTS.to_owned())),
        Some("bad.toml") => Ok((path.to_owned(), TENANTS.replace("weight = 1", "absolute = \"2Gbps\""))),
        _ => Err(format!("{}: there is none", path.display())),
    })
}

#[test]
fn a_file_and_the_same_keys_inline_are_the_same_tenants() {
    let config = parse(&format!(
        "[daemon]\nmetrics = \"127.0.0.1:9121\"\nevery = \"200ms\"\n[[device]]\nname = \"eth0\"\ntenants = \"a.toml\"\n\
         [[device]]\nname = \"eth0\"\nnetns = \"blue\"\nhook = \"clsact\"\n{INLINE}"
    ))
    .unwrap();
    assert_eq!(config.every, Wait::from_millis(200));
    assert!(config.namespaces, "a device is in another one");
    let [one, two] = &config.devices[..] else { panic!("{config:?}") };
    assert_eq!(read(&one.text, "").unwrap(), read(&two.text, "").unwrap());
    assert_eq!((one.hook, two.hook), (None, Some(Hook::Clsact)));
    assert_eq!(config.files, [PathBuf::from("a.toml")].into());
    // Nothing to attach: the daemon heals what others attached.
    assert_eq!(parse("").unwrap(), Config::default());
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let device = |keys: &str| format!("[[device]]\nname = \"eth0\"\n{keys}\n");
    for (text, wanted) in [
        ("[daemon]\nport = 1".to_owned(), "aqd.toml:2: unknown field `port`"),
        ("[daemon]\nmetrics = \"0.0.0.0:1\"".to_owned(), "aqd.toml: daemon.metrics: \"0.0.0.0:1\" can be reached"),
        ("[daemon]\nevery = \"1ms\"".to_owned(), "daemon.every: 1ms is not from 10ms to"),
        (device(""), "device[0]: write either"),
        (device(&format!("tenants = \"a.toml\"\n{INLINE}")), "device[0]: write either"),
        (device("tenants = \"b.toml\""), "device[0].tenants: b.toml: there is none"),
        (device("tenants = \"bad.toml\""), "declined"),
        (device("tenants = \"a.toml\"").replace("eth0", "a/b"), "device[0].name: \"a/b\" is no name"),
        (device("tenants = \"a.toml\"").repeat(2), "device[1].name: \"eth0\" is there twice"),
        (device("hook = \"xdp\"\ntenants = \"a.toml\""), "unknown variant `xdp`"),
        (device("link = { capacity = \"1Gbps\" }"), "device[0]: entity: there is none"),
    ] {
        let why = parse(&text).unwrap_err();
        assert!(why.contains(wanted), "{wanted}: {why}");
    }
}
