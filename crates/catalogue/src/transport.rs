//! The list of transports: one line each, and all that there is to adding one outside its folder.

use contract::{NetworkView, Scheme};
use node::wire::{Malformed, Reader, Writer};
use node::{Agreement, Packet};
use units::Problem;

use crate::Registered;
use crate::list::list;

list! {
    /// A transport and its settings. In a scenario: a name (`"dcpim"`, all defaults) or a table
    /// (`{ dcpim = { rounds = 3 } }`).
    Transport of Scheme, "a transport's name";
    "dcpim" Dcpim(transports::dcpim::Config),
    "phost" Phost(transports::phost::Config),
    "pfabric" Pfabric(transports::pfabric::Config),
    "newreno" NewReno(transports::tcp::Config<transports::tcp::newreno::Config>),
    "cubic" Cubic(transports::tcp::Config<transports::tcp::cubic::Config>),
    "dctcp" Dctcp(transports::tcp::Config<transports::tcp::dctcp::Config>),
    "swift" Swift(transports::tcp::Config<transports::tcp::swift::Config>),
    "illinois" Illinois(transports::tcp::Config<transports::tcp::illinois::Config>),
    "linux" Linux(transports::tcp::Config<transports::tcp::linux::Config>),
    "bbr" Bbr(transports::tcp::Config<transports::tcp::bbr::Config>),
    "rdma" Rdma(transports::rdma::Config<transports::rdma::line_rate::Config>),
    "dcqcn" Dcqcn(transports::rdma::Config<transports::rdma::dcqcn::Config>),
    "timely" Timely(transports::rdma::Config<transports::rdma::timely::Config>),
    "hpcc" Hpcc(transports::rdma::Config<transports::rdma::hpcc::Config>),
    "harmony" Harmony(transports::harmony::Config),
    "rsvp" Rsvp(transports::harmony::rsvp::Config),
    "fastpass" Fastpass(transports::fastpass::Config),
    "homa" Homa(transports::homa::Config),
    "homa_aeolus" HomaAeolus(transports::homa::aeolus::Config),
    "r2c2" R2c2(transports::r2c2::Config),
    "ndp" Ndp(transports::ndp::Config),
    "uet" Uet(transports::uet::Config),
    "udp" Udp(transports::udp::Config),
    "falcon" Falcon(transports::falcon::Config),
    needing settings: "custom" Custom(transports::tcp::custom::Config),
    others: Registered,
}

impl Default for Transport {
    fn default() -> Transport {
        Transport::named(Transport::NAMES[0]).expect("the catalogue's own name")
    }
}

impl Transport {
    /// The control of one's own that it names, if it is one.
    pub fn custom_mut(&mut self) -> Option<&mut transports::tcp::custom::Config> {
        match self {
            Transport::Custom(config) => Some(config),
            _ => None,
        }
    }

    /// What is wrong with its settings as they were read, if it was registered; keys begin with its name. The readers
    /// of the others refuse such settings themselves.
    pub fn misread(&self) -> Option<Problem> {
        match self {
            Transport::Registered(registered) => registered.misread().map(|problem| problem.under(self.name())),
            _ => None,
        }
    }

    /// What its types can't forbid; keys begin with its name.
    pub fn check(&self) -> Result<(), Problem> {
        self.as_scheme().check().map_err(|problem| problem.under(self.name()))
    }

    /// Its settings that have no effect beside its others; keys begin with its name.
    pub fn advice(&self) -> Vec<Problem> {
        self.as_scheme().advice().into_iter().map(|problem| problem.under(self.name())).collect()
    }

    /// What the network must be like for it; keys begin with its name.
    pub fn check_on(&self, network: &NetworkView) -> Result<(), Problem> {
        self.as_scheme().check_on(network).map_err(|problem| problem.under(self.name()))
    }

    /// Appends a packet of this transport's as it travels, but for its content, which follows.
    pub fn emit_header(&self, packet: &Packet, content: &[u8], to: &mut Writer<'_>) {
        self.as_scheme().headers().emit(packet, content, to);
    }

    /// Reads a header from a wire into `packet`, and leaves its content to be read.
    pub fn parse_header(&self, from: &mut Reader<'_>, packet: &mut Packet) -> Result<(), Malformed> {
        self.as_scheme().headers().parse(from, packet)
    }

    /// A link has inverted these bits of a packet of this transport. Returns whether the packet travels on, with its
    /// header changed accordingly.
    pub fn damage(&self, packet: &mut Packet, bits: &[u32]) -> bool {
        self.as_scheme().headers().damage(packet, bits)
    }

    /// What a packet of this transport's says, in the words of its paper.
    pub fn says(&self, packet: &Packet) -> String {
        self.as_scheme().headers().says(packet)
    }

    /// Whether it is a message by which nodes agree on who may send.
    pub fn agreement(&self, packet: &Packet) -> Option<Agreement> {
        self.as_scheme().headers().agreement(packet)
    }

    /// Where in its message a data packet's payload begins, in bytes.
    pub fn payload_offset(&self, packet: &Packet) -> u64 {
        self.as_scheme().headers().payload_offset(packet)
    }
}
