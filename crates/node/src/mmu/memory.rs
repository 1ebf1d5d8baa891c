//! Memory of a switch, counted from one side: by the port and priority group of arrival (ingress), or by the port and
//! queue of departure (egress). A switch counts every packet on both sides and admits it only where both have room.
//!
//! An account (a priority group or a queue) takes first what is reserved for it, then what is reserved for its port,
//! then a part of its pool that all share. The shared part that an account may take is limited by its [`Threshold`],
//! and so is that of a port. Lossless groups have headroom for what still arrives after a pause: of their own, or a
//! share of the pool's, whose sum is then limited as well. A packet leaves headroom first, then the shared part, then
//! what is reserved. So a count of bytes for each account says where all of its bytes are, and no packet has to be
//! remembered.
//!
//! Memory consists of cells: each packet takes whole ones.
//!
//! These are the terms of SAI's buffer model (size, shared threshold static or dynamic, xoff, xon, xon offset), which
//! SONiC configures. Where SAI leaves it open: the free memory of a dynamic threshold is that before the packet, as in
//! [`Buffer::Shared`](crate::Buffer::Shared); a group goes on only when its headroom is empty again, so that each pause
//! finds all of it.

use crate::packet::CLASSES;

/// A pool of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Bytes without headroom: what is reserved, and the part that all share.
    pub bytes: u64,
    /// Headroom that its groups share; `None` if each has its own.
    pub headroom: Option<u64>,
}

/// How much of a pool's shared part one account, or one port, may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// These bytes.
    Static(u64),
    /// This multiple of the shared bytes that are free (Choudhury and Hahne 1998).
    Dynamic(f64),
}

impl Threshold {
    /// The bytes, when `free` of the pool's are free.
    #[inline]
    pub fn bytes(self, free: u64) -> u64 {
        match self {
            Threshold::Static(bytes) => bytes,
            Threshold::Dynamic(alpha) => (alpha * free as f64) as u64,
        }
    }
}

/// The memory of a priority group or a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// The number of its pool.
    pub pool: usize,
    /// Bytes that it alone may use.
    pub reserved: u64,
    /// How much of the shared part it may take.
    pub threshold: Threshold,
    /// Bytes for what arrives after a pause; 0 for a group or queue that loses packets instead.
    pub headroom: u64,
    /// It goes on below this many bytes in any case.
    pub xon: u64,
    /// It goes on when it has fallen this far below its limit.
    pub xon_offset: u64,
}

/// The memory of a port in a pool, for all of its accounts together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PortProfile {
    /// The number of the pool.
    pub pool: usize,
    /// Bytes that the port alone may use.
    pub reserved: u64,
    /// How much of the shared part it may take.
    pub threshold: Threshold,
}

/// Where a packet has room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// In what is reserved or shared.
    Shared,
    /// In headroom: its group must pause.
    Headroom,
}

/// A pool that is smaller than what is reserved in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// The number of the pool.
    pub pool: usize,
    /// Bytes that are reserved in it.
    pub reserved: u64,
}

/// The bytes that a switch holds, from one side.
#[derive(Debug, node::State)]
pub struct Memory {
    #[state(built("settings"))]
    cell: u64,
    #[state(built("settings"))]
    pools: Vec<Pool>,
    #[state(built("settings"))]
    profiles: Vec<[Option<Profile>; CLASSES]>,
    /// By port and pool.
    #[state(built("settings"))]
    ports: Vec<Vec<Option<PortProfile>>>,
    accounts: Vec<[Account; CLASSES]>,
    /// By port and pool: bytes of its accounts beyond what is reserved for each.
    port_used: Vec<Vec<u64>>,
    /// By pool: bytes in the shared part, and in headroom, now and at most.
    used: Vec<Used>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, node::State)]
struct Account {
    /// Bytes in reserved and shared memory.
    bytes: u64,
    headroom: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, node::State)]
struct Used {
    shared: u64,
    headroom: u64,
    shared_max: u64,
    headroom_max: u64,
}

impl Memory {
    /// Empty memory. `pools` are as large as configured; `profiles` and `ports` are by port, `ports` in any order of
    /// pools. A packet takes whole cells of `cell` bytes.
    pub fn new(
        cell: u64,
        mut pools: Vec<Pool>,
        profiles: Vec<[Option<Profile>; CLASSES]>,
        ports: &[Vec<PortProfile>],
    ) -> Result<Memory, Shortage> {
        let of_pool = |of: &[PortProfile]| {
            let mut by_pool = vec![None; pools.len()];
            of.iter().for_each(|of| by_pool[of.pool] = Some(*of));
            by_pool
        };
        let ports: Vec<Vec<Option<PortProfile>>> = ports.iter().map(|of| of_pool(of)).collect();
        for (pool, own) in pools.iter_mut().enumerate() {
            let accounts = profiles.iter().flatten().flatten().filter(|of| of.pool == pool).map(|of| of.reserved);
            let of_ports = ports.iter().filter_map(|of| of[pool]).map(|of| of.reserved);
            let reserved = accounts.chain(of_ports).fold(0u64, u64::saturating_add);
            own.bytes = own.bytes.checked_sub(reserved).ok_or(Shortage { pool, reserved })?;
        }
        Ok(Memory {
            cell: cell.max(1),
            accounts: vec![[Account::default(); CLASSES]; profiles.len()],
            port_used: vec![vec![0; pools.len()]; profiles.len()],
            used: vec![Used::default(); pools.len()],
            pools,
            profiles,
            ports,
        })
    }

    /// The bytes of memory that a packet takes.
    #[inline]
    pub fn cells(&self, bytes: u64) -> u64 {
        if self.cell == 1 { bytes } else { bytes.div_ceil(self.cell) * self.cell }
    }

    /// Where a packet that belongs to an account has room; `None` if nowhere.
    #[inline]
    pub fn room(&self, port: usize, account: usize, bytes: u64) -> Option<Room> {
        let profile = self.profiles[port][account].as_ref()?;
        let bytes = self.cells(bytes);
        if self.fits(port, account, profile, bytes) {
            return Some(Room::Shared);
        }
        let own = self.accounts[port][account].headroom + bytes <= profile.headroom;
        let of_pool = self.used[profile.pool].headroom + bytes;
        let within = self.pools[profile.pool].headroom.is_none_or(|all| of_pool <= all);
        (own && within).then_some(Room::Headroom)
    }

    fn fits(&self, port: usize, account: usize, profile: &Profile, bytes: u64) -> bool {
        let (pool, before) = (profile.pool, self.accounts[port][account].bytes);
        let beyond = (before + bytes).saturating_sub(profile.reserved);
        let more = beyond - before.saturating_sub(profile.reserved);
        let of_port = self.ports[port][pool];
        let kept = of_port.map_or(0, |of| of.reserved);
        let port_before = self.port_used[port][pool];
        let port_beyond = (port_before + more).saturating_sub(kept);
        let shared = port_beyond - port_before.saturating_sub(kept);
        if shared == 0 {
            return true;
        }
        let free = self.free(pool);
        shared <= free
            && beyond <= profile.threshold.bytes(free)
            && of_port.is_none_or(|of| port_beyond <= of.threshold.bytes(free))
    }

    /// Counts a packet where it has room.
    #[inline]
    pub fn take(&mut self, port: usize, account: usize, bytes: u64, place: Room) {
        let bytes = self.cells(bytes);
        let profile = self.profile(port, account);
        let own = &mut self.accounts[port][account];
        let used = &mut self.used[profile.pool];
        if place == Room::Headroom {
            own.headroom += bytes;
            used.headroom += bytes;
            used.headroom_max = used.headroom_max.max(used.headroom);
            return;
        }
        let before = own.bytes.saturating_sub(profile.reserved);
        own.bytes += bytes;
        let more = own.bytes.saturating_sub(profile.reserved) - before;
        let kept = self.ports[port][profile.pool].map_or(0, |of| of.reserved);
        let of_port = &mut self.port_used[port][profile.pool];
        let before = of_port.saturating_sub(kept);
        *of_port += more;
        used.shared += of_port.saturating_sub(kept) - before;
        used.shared_max = used.shared_max.max(used.shared);
    }

    /// A packet has left.
    #[inline]
    pub fn give(&mut self, port: usize, account: usize, bytes: u64) {
        let bytes = self.cells(bytes);
        let profile = self.profile(port, account);
        let own = &mut self.accounts[port][account];
        let used = &mut self.used[profile.pool];
        let from_headroom = own.headroom.min(bytes);
        own.headroom -= from_headroom;
        used.headroom -= from_headroom;
        let before = own.bytes.saturating_sub(profile.reserved);
        own.bytes -= bytes - from_headroom;
        let less = before - own.bytes.saturating_sub(profile.reserved);
        let kept = self.ports[port][profile.pool].map_or(0, |of| of.reserved);
        let of_port = &mut self.port_used[port][profile.pool];
        let before = of_port.saturating_sub(kept);
        *of_port -= less;
        used.shared -= before - of_port.saturating_sub(kept);
    }

    /// Whether a paused group may go on.
    #[inline]
    pub fn resumes(&self, port: usize, account: usize) -> bool {
        let (profile, own) = (self.profile(port, account), &self.accounts[port][account]);
        own.headroom == 0 && (own.bytes == 0 || own.bytes <= profile.xon.max(self.goes_on_at(&profile)))
    }

    fn goes_on_at(&self, profile: &Profile) -> u64 {
        (profile.reserved + profile.threshold.bytes(self.free(profile.pool))).saturating_sub(profile.xon_offset)
    }

    fn profile(&self, port: usize, account: usize) -> Profile {
        self.profiles[port][account].expect("packets have room only where there is a profile")
    }

    /// Shared bytes of a pool that are free.
    #[inline]
    pub fn free(&self, pool: usize) -> u64 {
        self.pools[pool].bytes - self.used[pool].shared
    }

    /// Bytes of an account.
    pub fn bytes(&self, port: usize, account: usize) -> u64 {
        let own = self.accounts[port][account];
        own.bytes + own.headroom
    }

    /// By pool: the most bytes in its shared part, and in its headroom.
    pub fn most(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.used.iter().map(|used| (used.shared_max, used.headroom_max))
    }

    /// Whether the sums of all accounts are those of the pools, and no pool is over its size. For audits and tests.
    pub fn is_balanced(&self) -> bool {
        (0..self.pools.len()).all(|pool| {
            let mut headroom = 0;
            let mut shared = 0;
            for (port, profiles) in self.profiles.iter().enumerate() {
                let of = |at: usize| profiles[at].filter(|of| of.pool == pool).map(|of| (of, self.accounts[port][at]));
                let beyond: u64 = (0..CLASSES).filter_map(of).map(|(of, a)| a.bytes.saturating_sub(of.reserved)).sum();
                headroom += (0..CLASSES).filter_map(of).map(|(_, a)| a.headroom).sum::<u64>();
                shared += beyond.saturating_sub(self.ports[port][pool].map_or(0, |of| of.reserved));
            }
            let used = self.used[pool];
            (used.shared, used.headroom) == (shared, headroom)
                && shared <= self.pools[pool].bytes
                && self.pools[pool].headroom.is_none_or(|all| headroom <= all)
        })
    }
}

#[cfg(test)]
mod tests;
