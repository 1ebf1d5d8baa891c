//! The program of the crate that `clearway new transport mine` writes, for tests that must not wait for its build; and
//! beside that transport another, `trouble`, which does what a transport's author may do by mistake.

#[path = "../../../python/clearway/programs/crates/transport/src/lib.rs"]
mod mine;

use clearway::contract::{About, Capabilities, HeaderFormat, NetworkView, Scheme, SwitchRequirements};
use clearway::node::{Endpoint, EndpointParams};
use clearway::units::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

fn main() -> std::process::ExitCode {
    clearway::Engine::new().transport::<mine::Config>("mine").transport::<Trouble>("trouble").main()
}

/// The same transport, whose hosts do this when they are made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Trouble {
    does: Does,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Does {
    #[default]
    Print,
    Panic,
    Abort,
    Hang,
}

impl Scheme for Trouble {
    fn about(&self) -> About {
        mine::Config::default().about()
    }

    fn capabilities(&self) -> Capabilities {
        mine::Config::default().capabilities()
    }

    fn headers(&self) -> &'static dyn HeaderFormat {
        mine::Config::default().headers()
    }

    fn check(&self) -> Result<(), Problem> {
        Ok(())
    }

    fn endpoint(&self, site: &EndpointParams, network: &NetworkView) -> Box<dyn Endpoint> {
        match self.does {
            Does::Print => println!("a host is made"),
            Does::Panic => panic!("no host for you"),
            Does::Abort => std::process::abort(),
            Does::Hang => loop {
                std::hint::spin_loop();
            },
        }
        mine::Config::default().endpoint(site, network)
    }

    fn requirements(&self, site: &EndpointParams) -> SwitchRequirements {
        mine::Config::default().requirements(site)
    }
}
