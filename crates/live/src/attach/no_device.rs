//! Where there are no TUN devices: a clear error in their place.

use units::Problem;

use super::Setting;
use super::neighbours::Mac;

/// There is none.
#[derive(Debug)]
pub(crate) struct Device {
    pub mac: Option<Mac>,
}

impl Device {
    pub fn open(_: &str, name: &str, _: Setting) -> Result<Device, Problem> {
        let message = "attached hosts need TUN devices and network namespaces, which Linux has and this system has not";
        Err(Problem::new(format!("live.attach.{name}"), message))
    }

    pub fn read(&mut self, _: &mut [u8]) -> Option<usize> {
        None
    }

    pub fn write(&mut self, _: &[u8]) -> bool {
        false
    }
}
