//! CBFC in a host's NIC.

use std::collections::VecDeque;

use node::{NicControl, Packet};
use units::Time;

use super::channels::Channels;
use super::frame::Frame;

/// A NIC that sends by credits, and gives the switch credits for what the host has taken in.
#[derive(node::State)]
pub(super) struct NicPart {
    channels: Channels,
    /// Messages to the switch.
    messages: VecDeque<Packet>,
    #[state(turn("epoch"))]
    epoch: u32,
}

impl NicPart {
    pub fn new(channels: Channels) -> NicPart {
        NicPart { channels, messages: VecDeque::new(), epoch: 0 }
    }

    fn say(&mut self, message: Option<Frame>) {
        self.messages.extend(message.map(|message| self.channels.packet(message)));
    }
}

impl NicControl for NicPart {
    fn frame(&mut self, _: Time, frame: &Packet) {
        let before = self.channels.paused();
        let answer = self.channels.hears(frame);
        self.say(answer);
        self.epoch = self.epoch.wrapping_add(u32::from(before & !self.channels.paused() != 0));
    }

    fn reset(&mut self, up: bool) {
        let messages = self.channels.reset(up);
        self.messages = messages.into_iter().map(|message| self.channels.packet(message)).collect();
    }

    fn paused_classes(&self) -> u8 {
        self.channels.paused()
    }

    fn counts(&self) -> bool {
        true
    }

    fn epoch(&self) -> u32 {
        self.epoch
    }

    fn stamp(&mut self, packet: &Packet) -> u16 {
        let (mark, message) = self.channels.leaves(packet);
        self.say(message);
        mark
    }

    fn comes(&mut self, packet: &Packet, mark: u16) {
        self.channels.came(mark, packet);
    }

    fn taken(&mut self, packet: &Packet, mark: u16) {
        let message = self.channels.freed(mark, packet);
        self.say(message);
    }

    fn says(&mut self) -> Option<Packet> {
        self.messages.pop_front()
    }
}
