use node::walk::walk_header;
use testing::Wire;
use testing::walks::check_told_apart;
use units::HostId;

use super::super::Config;
use super::super::header::Rts;
use super::*;

fn host() -> Uet {
    let params = Params::new(&Config::default(), &Wire::default().site(HostId(0), 2));
    let mut host = Uet::new(params, Receiver::new(None));
    let rts = Rts { pull_target: 3, message_bytes: 5 };
    host.control.push_back(host.params.control(FlowId(0), HostId(1), Header::Rts(rts)));
    host
}

#[test]
fn its_walk_names_what_is_to_be_sent() {
    check_told_apart(
        &[walk_header::<Header>],
        host,
        |host, walk| host.walk(walk),
        &[
            ("how many packets wait", |host| host.control.clear()),
            ("what a packet says", |host| {
                let rts = Rts { pull_target: 3, message_bytes: 6 };
                host.control[0].set_header(Header::Rts(rts));
            }),
            ("the next entropy value", |host| host.turn += 1),
        ],
        &[],
    );
}
