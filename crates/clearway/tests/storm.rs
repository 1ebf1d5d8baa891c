//! A transport from a crate outside of the tree that repeats the first packets of its messages for ever. Its links are
//! busy, and its receivers get nothing new.

use clearway::contract::{
    About, Capabilities, Family, HeaderFormat, NetworkView, Scheme, SwitchRequirements, headers_of,
};
use clearway::node;
use clearway::node::wire::{Malformed, Reader, Writer};
use clearway::node::{Balancing, Cx, Endpoint, EndpointParams, Header, Input, Message, Packet, PollAt};
use clearway::units::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Repeats the first `packets` packets of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Storm {
    packets: u64,
}

impl Default for Storm {
    fn default() -> Storm {
        Storm { packets: 40 }
    }
}

impl Scheme for Storm {
    fn about(&self) -> About {
        About { title: "Storm", source: "a test", summary: "Repeats itself.", needs: "nothing" }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::of_hosts(Family::Reactive)
    }

    fn headers(&self) -> &'static dyn HeaderFormat {
        headers_of::<Offset>()
    }

    fn check(&self) -> Result<(), Problem> {
        Ok(())
    }

    fn endpoint(&self, site: &EndpointParams, _: &NetworkView) -> Box<dyn Endpoint> {
        Box::new(Sender { packets: self.packets, site: site.clone(), message: None, next: 0 })
    }

    fn requirements(&self, _: &EndpointParams) -> SwitchRequirements {
        SwitchRequirements::only(Balancing::Ecmp)
    }

    fn when_stuck(&self, _: &NetworkView) -> Option<String> {
        Some("packets = 1000000 lets it reach the end".to_owned())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
struct Offset(u64);

impl Header for Offset {
    type Packed = u64;

    fn pack(self) -> u64 {
        self.0
    }

    fn unpack(packed: u64) -> Offset {
        Offset(packed)
    }

    fn emit(self, to: &mut Writer<'_>) {
        to.u64(self.0);
    }

    fn parse(from: &mut Reader<'_>) -> Result<Offset, Malformed> {
        from.u64().map(Offset)
    }

    fn payload_offset(self) -> u64 {
        self.0
    }
}

#[derive(node::State)]
#[state(refuse("a storm never comes to an end"))]
struct Sender {
    packets: u64,
    #[state(built("settings"))]
    site: EndpointParams,
    message: Option<Message>,
    next: u64,
}

impl Endpoint for Sender {
    fn handle(&mut self, _: &mut Cx<'_>, input: Input<'_>) {
        if let Input::Send(message) = input {
            self.message = Some(*message);
        }
    }

    fn poll_transmit(&mut self, _: &mut Cx<'_>) -> Option<Packet> {
        let Message { flow, dst, bytes, .. } = self.message?;
        let payload = u64::from(self.site.payload_max());
        let offset = (self.next % self.packets * payload).min(bytes - payload);
        self.next += 1;
        Some(self.site.data_packet(flow, dst, Offset(offset), payload as u16))
    }

    fn poll_at(&self) -> PollAt {
        PollAt::OnArrival
    }
}

/// The finding "every class moves" of a run of 20 ms in which this many packets are repeated.
fn moves(packets: u64) -> (bool, String) {
    let toml = format!(
        r#"
        transport.storm.packets = {packets}
        measure = {{ end = "20ms", interval = "0s" }}
        fabric.star = {{ hosts = 3, rate = "10Gbps" }}
        [[traffic]]
        sizes.constant = "1GB"
        senders = "1"
        receivers = "2"
        arrivals = "all_at_once"
        "#
    );
    let scenario = scenario::read(&toml, "storm.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    let result = sim::run(&scenario, 1, |_| false).unwrap_or_else(|problem| panic!("{problem}"));
    let finding = result.info.audit.into_iter().find(|finding| finding.name == "every class moves");
    finding.map(|finding| (finding.ok, finding.detail)).expect("every run has it")
}

#[test]
fn payload_that_comes_again_and_again_is_nothing_new() {
    catalogue::register::<Storm>("storm").expect("the name is free");
    let (ok, detail) = moves(40);
    assert!(!ok && detail.starts_with("livelock: nothing new has come over storm"), "{detail}");
    assert!(detail.contains("100% Offset") && detail.ends_with("packets = 1000000 lets it reach the end"), "{detail}");
    // As many as have come by then: each is new.
    assert_eq!(moves(1_000_000), (true, "no class stood still when the run ended".to_owned()));
}
