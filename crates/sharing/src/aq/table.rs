//! The AQs of one pipeline (ingress or egress) of a switch: packed rows in a hash table by AQ id, so that a packet
//! costs the same with one AQ and with a million (section 4.2).
//!
//! Open addressing with linear probing; rows move only when one is removed. At most four of five rows are in use. A
//! table sized for its content ([`Table::for_entities`]) takes 18.75 bytes for each AQ and three probes for a hit on
//! average. Ids are unique in a network, so a table can't be indexed by them: a switch may hold any few of them. A
//! cheaper hash than [`units::mix`] is not safe: Fibonacci hashing takes a third of the time for dense ids, but 31
//! probes for a hit with a hundred ids that are 144 apart, as they are if requests go round 144 switches.

use node::Walk;
use rustc_hash::FxHashMap;
use units::{Bytes, Duration, Stream, Time, mix};

use super::gap::Yield;
use super::state::Row;
use super::{AqId, AqRate, Gap, Policy, Verdict};

/// Why an AQ could not be deployed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeployError {
    /// All 65,536 policies are in use.
    #[error("one table holds at most 65,536 different pairs of limit and CC fields; let more AQs have the same")]
    Policies,
}

/// A table of AQs.
#[derive(Clone, Debug, node::State)]
#[state(first(self.sweep(walk.now())))]
pub struct Table {
    #[state(by(visit_rows))]
    rows: Vec<Row>,
    len: usize,
    #[state(skip("rows have their numbers"))]
    policies: Vec<Policy>,
    /// By policy: number of AQs.
    #[state(skip("they follow from the rows"))]
    users: Vec<u32>,
    #[state(skip("they follow from the policies"))]
    numbers: FxHashMap<Policy, u16>,
    #[state(same(self.fastest.code()))]
    fastest: AqRate,
}

impl Default for Table {
    fn default() -> Self {
        Table::for_entities(0)
    }
}

fn visit_rows<G: ?Sized>(rows: &mut Vec<Row>, walk: &mut Walk, _: &G) {
    let mut then = walk.now();
    walk.time(&mut then);
    walk.same(rows.len());
    for row in rows {
        walk.same(row.tag());
        if row.tag() != 0 {
            let (rate, mut gap) = (row.rate(), row.gap());
            walk.same((rate.code(), row.policy()));
            walk.same_of("the gap of an Augmented Queue", gap.bytes.into());
            walk.same_of("how an Augmented Queue rounds its clock", rate.rounding(walk.now()));
            gap.last = rate.clock(then);
            row.set_gap(gap);
        }
    }
}

impl Table {
    /// A table that holds `entities` AQs without growing.
    pub fn for_entities(entities: usize) -> Table {
        Table {
            rows: vec![Row::EMPTY; rows_for(entities.max(1))],
            len: 0,
            policies: Vec::new(),
            users: Vec::new(),
            numbers: FxHashMap::default(),
            fastest: AqRate::MIN,
        }
    }

    /// Number of AQs.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A packet of `bytes` tagged with an AQ arrives. If the AQ is not deployed here the packet passes unchanged.
    #[inline]
    pub fn arrive(&mut self, now: Time, id: AqId, bytes: u16, random: &mut Stream) -> Verdict {
        self.arrive_at(now, id, bytes, 0, false, random)
    }

    /// The same where the physical queue holds `queued` bytes, which matters to AQs with lent bandwidth
    /// ([`Policy::yields`]). With `bypass` only packets of capped AQs are counted (section 6).
    #[inline]
    pub fn arrive_at(
        &mut self,
        now: Time,
        id: AqId,
        bytes: u16,
        queued: u32,
        bypass: bool,
        random: &mut Stream,
    ) -> Verdict {
        let at = self.find(id);
        let row = &mut self.rows[at];
        if row.tag() == 0 {
            return Verdict::UNTOUCHED;
        }
        let policy = &self.policies[usize::from(row.policy())];
        if bypass && !policy.is_capped() {
            return Verdict::UNTOUCHED;
        }
        let mut gap = row.gap();
        let verdict = gap.arrive(row.rate(), policy, now, bytes, random);
        row.set_gap(gap);
        match policy.yields(queued) {
            None => verdict,
            Some(Yield::Told) => Verdict { told: verdict.pass, mark: verdict.pass, ..verdict },
            // It counts all the same. Otherwise the AQ would be empty by then, and its entity could fill the physical
            // queue with a burst as soon as it has no more than its guarantee and need not yield.
            Some(Yield::Drop) => Verdict::DROP,
        }
    }

    /// Deploys an AQ, or changes the rate and policy of a deployed one, whose virtual delay stays
    /// ([`Gap::change_rate`]). On an error nothing changes.
    pub fn deploy(&mut self, now: Time, id: AqId, rate: AqRate, policy: Policy) -> Result<(), DeployError> {
        let number = self.intern(policy).ok_or(DeployError::Policies)?;
        self.fastest = self.fastest.max(rate);
        let mut at = self.find(id);
        let old = self.rows[at];
        let gap = if old.tag() == 0 {
            self.len += 1;
            if rows_for(self.len) > self.rows.len() {
                self.grow();
                at = self.find(id);
            }
            Gap::new(rate, now)
        } else {
            self.users[usize::from(old.policy())] -= 1;
            self.forget_unused(old.policy());
            let mut gap = old.gap();
            gap.change_rate(old.rate(), rate, &policy, now);
            gap
        };
        self.rows[at] = Row::new(id, rate, gap, number);
        Ok(())
    }

    /// Removes an AQ; false if it was not here.
    pub fn withdraw(&mut self, id: AqId) -> bool {
        let mut hole = self.find(id);
        let row = self.rows[hole];
        if row.tag() == 0 {
            return false;
        }
        self.len -= 1;
        self.users[usize::from(row.policy())] -= 1;
        self.forget_unused(row.policy());
        // Rows after the hole move up if a search for them would otherwise end at the hole.
        let mut at = hole;
        loop {
            at = self.after(at);
            let tag = self.rows[at].tag();
            if tag == 0 {
                break;
            }
            let distance = |from: usize| (at + self.rows.len() - from) % self.rows.len();
            if distance(self.home(tag)) >= distance(hole) {
                self.rows[hole] = self.rows[at];
                hole = at;
            }
        }
        self.rows[hole] = Row::EMPTY;
        true
    }

    /// R and A of an AQ, with the gap updated to `now`.
    pub fn get(&self, now: Time, id: AqId) -> Option<(AqRate, Gap)> {
        let row = &self.rows[self.find(id)];
        (row.tag() != 0).then(|| {
            let mut gap = row.gap();
            gap.drain(row.rate(), now);
            (row.rate(), gap)
        })
    }

    /// Updates every gap to `now`. The driver of the switch calls it each [`Table::sweep_period`], as a switch's
    /// processor would, so that the clock of a row without packets does not wrap unnoticed.
    pub fn sweep(&mut self, now: Time) {
        for row in self.rows.iter_mut().filter(|row| row.tag() != 0) {
            let mut gap = row.gap();
            gap.drain(row.rate(), now);
            row.set_gap(gap);
        }
    }

    /// Half a wrap of the fastest clock that the table has had.
    pub fn sweep_period(&self) -> Duration {
        self.fastest.wrap() / 2
    }

    /// Memory of its rows, including empty ones, and of its policies.
    pub fn memory(&self) -> Bytes {
        let policy = size_of::<Policy>() + size_of::<u32>();
        let number = size_of::<(Policy, u16)>() + 1; // a byte of control each, in std's table
        let bytes = self.rows.capacity() * size_of::<Row>()
            + self.policies.capacity() * policy
            + self.numbers.capacity() * 8 / 7 * number;
        Bytes(bytes as u64)
    }

    /// The row of `id`, or the empty row where it would be.
    #[inline]
    fn find(&self, id: AqId) -> usize {
        let mut at = self.home(id.tag());
        loop {
            let tag = self.rows[at].tag();
            if tag == id.tag() || tag == 0 {
                return at;
            }
            at = self.after(at);
        }
    }

    #[inline]
    fn home(&self, tag: u32) -> usize {
        (((mix(0, u64::from(tag)) >> 32) * self.rows.len() as u64) >> 32) as usize
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        if at + 1 == self.rows.len() { 0 } else { at + 1 }
    }

    #[cold]
    fn grow(&mut self) {
        let rows = vec![Row::EMPTY; rows_for(2 * self.len)];
        for row in std::mem::replace(&mut self.rows, rows) {
            if let Some(id) = AqId::from_tag(row.tag()) {
                let at = self.find(id);
                self.rows[at] = row;
            }
        }
    }

    /// The number of a policy, with one more user.
    fn intern(&mut self, policy: Policy) -> Option<u16> {
        let number = match self.numbers.get(&policy) {
            Some(&number) => number,
            None => {
                let free = if self.numbers.len() < self.policies.len() {
                    self.users.iter().position(|&users| users == 0)?
                } else {
                    self.policies.push(policy);
                    self.users.push(0);
                    self.policies.len() - 1
                };
                let Ok(number) = u16::try_from(free) else {
                    self.policies.pop();
                    self.users.pop();
                    return None;
                };
                self.policies[free] = policy;
                self.numbers.insert(policy, number);
                number
            }
        };
        self.users[usize::from(number)] += 1;
        Some(number)
    }

    fn forget_unused(&mut self, number: u16) {
        if self.users[usize::from(number)] == 0 {
            self.numbers.remove(&self.policies[usize::from(number)]);
        }
    }
}

/// One row of five, and at least one, stays empty so that a search ends.
fn rows_for(entities: usize) -> usize {
    entities + entities.div_ceil(4)
}

#[cfg(test)]
mod tests;
