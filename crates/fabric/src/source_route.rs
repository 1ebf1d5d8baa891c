use units::{HostId, PortId, Stream};

use crate::{Fabric, Routes};

/// A path that a packet carries: the output port at each switch on its way, packed into 64 bits, first hop lowest.
///
/// Each port takes [`Fabric::port_bits`] bits, the least that number the ports of the fabric's largest switch. A 3D
/// torus node with six links and a host needs 3 bits, as in R2C2 section 4.2, and a route holds 21 switches; a fat-tree
/// of 16-port switches needs 4 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Route(pub u64);

/// The error of a route that can't be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// The path has more switches than fit.
    #[error("a route over {switches} switches at {port_bits} bits a port does not fit in 64 bits")]
    TooLong {
        /// Switches on the way.
        switches: usize,
        /// Bits a port takes.
        port_bits: u32,
    },
    /// A port number needs more bits than a port of this fabric takes.
    #[error("port {port} does not fit in {port_bits} bits")]
    NoSuchPort {
        /// The port.
        port: PortId,
        /// Bits a port takes.
        port_bits: u32,
    },
    /// There is no path.
    #[error("there is no path from host {src} to host {dst}")]
    Unreachable {
        /// Source of the path.
        src: HostId,
        /// Destination of the path.
        dst: HostId,
    },
}

impl Route {
    /// The route through these output ports, one for each switch.
    pub fn new(ports: &[PortId], port_bits: u32) -> Result<Route, RouteError> {
        if ports.len() as u64 * u64::from(port_bits) > 64 {
            return Err(RouteError::TooLong { switches: ports.len(), port_bits });
        }
        let mut packed = 0u64;
        for &port in ports.iter().rev() {
            if u64::from(port.0) >> port_bits != 0 {
                return Err(RouteError::NoSuchPort { port, port_bits });
            }
            packed = packed << port_bits | u64::from(port.0);
        }
        Ok(Route(packed))
    }

    /// The output port at the switch after `hops` others. Beyond the end of the route it is port 0, but a packet's path
    /// ends at its last port, which leads to a host.
    #[inline]
    pub const fn port(self, hops: u32, port_bits: u32) -> PortId {
        let at = hops * port_bits;
        if at >= 64 { PortId(0) } else { PortId((self.0 >> at) as u32 & ((1 << port_bits) - 1)) }
    }

    /// A random shortest path: at each switch one of the equal-cost ports, all equally likely. This is random packet
    /// spraying (R2C2 section 2.2.1) decided at the source.
    pub fn sample(
        fabric: &Fabric,
        routes: &Routes,
        src: HostId,
        dst: HostId,
        stream: &mut Stream,
    ) -> Result<Route, RouteError> {
        if src == dst || routes.hops(src, dst).is_none() {
            return Err(RouteError::Unreachable { src, dst });
        }
        let mut ports = Vec::with_capacity(16);
        let mut at = Some(fabric.rack_of(src));
        while let Some(switch) = at {
            let &port = stream.choose(routes.next(switch, dst)).ok_or(RouteError::Unreachable { src, dst })?;
            ports.push(port);
            at = fabric.as_switch(fabric.link(fabric.out_link(switch, port)).to);
        }
        Route::new(&ports, fabric.port_bits())
    }
}
