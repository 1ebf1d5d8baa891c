//! TUN and TAP devices of Linux, and their place in a network namespace.
//!
//! A device is in the namespace of the thread that opened it, wherever it is read from afterwards. So a thread of its
//! own goes into the namespace, opens the device, gives it addresses, and ends. A device that was made here is removed
//! when the file is closed, however the process ends.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::ioctl::{IntegerSetter, Opcode, Setter, Updater, ioctl, opcode};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use scenario::Networks;
use units::Problem;

use super::Setting;
use super::neighbours::Mac;

/// Frames that wait in a device that was made here until they are read; the kernel drops more.
const QUEUE: u32 = 200;

const TUN: u16 = 1;
const TAP: u16 = 2;
const SEVERAL_QUEUES: u16 = 0x100;
const NO_INFORMATION: u16 = 0x1000;
const VIRTIO_HEADER: u16 = 0x4000;

/// Checksums left to us, and TCP over IPv4 and IPv6 in frames of up to 64 KB, marks of congestion among them.
const OFFLOADS: usize = 0x1 | 0x2 | 0x4 | 0x8;

const SET_DEVICE: Opcode = opcode::write::<i32>(b'T', 202);
const SET_OFFLOADS: Opcode = opcode::write::<u32>(b'T', 208);
const GET_FLAGS: Opcode = 0x8913;
const SET_FLAGS: Opcode = 0x8914;
const SET_ADDRESS: Opcode = 0x8916;
const SET_MASK: Opcode = 0x891C;
const SET_MTU: Opcode = 0x8922;
const GET_INDEX: Opcode = 0x8933;
const SET_QUEUE: Opcode = 0x8943;
const UP: u16 = 1;

/// An open device.
#[derive(Debug)]
pub(crate) struct Device {
    file: File,
    /// Of a TAP device: its own hardware address, as far as is known.
    pub mac: Option<Mac>,
}

/// `struct ifreq` of Linux: a device's name and what is said of it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Request {
    name: [u8; 16],
    value: [u8; 24],
}

/// `struct in6_ifreq` of Linux.
#[repr(C)]
#[derive(Clone, Copy)]
struct Request6 {
    address: [u8; 16],
    prefix: u32,
    index: u32,
}

impl Device {
    /// What a scenario calls `what`; a device that is made for it gets the name `name`.
    pub fn open(what: &str, name: &str, setting: Setting) -> Result<Device, Problem> {
        let opened = match what.strip_prefix("netns:") {
            Some(namespace) => in_namespace(namespace, name, setting),
            None => existing(what, setting),
        };
        opened.map_err(|message| Problem::new(format!("live.attach.{name}"), message))
    }

    /// The next frame, if there is one: how many bytes of `buffer` it takes.
    #[inline]
    pub fn read(&mut self, buffer: &mut [u8]) -> Option<usize> {
        // An error is a device that somebody has removed or set down: nothing comes from it.
        self.file.read(buffer).ok()
    }

    /// Whether the device took a frame.
    #[inline]
    pub fn write(&mut self, frame: &[u8]) -> bool {
        self.file.write(frame).is_ok_and(|count| count == frame.len())
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A device that there is: a TAP or a TUN, which says so itself.
fn existing(name: &str, setting: Setting) -> Result<Device, String> {
    let about = format!("/sys/class/net/{name}");
    if !std::path::Path::new(&about).exists() {
        return Err(format!(
            "there is no network device \"{name}\": `ip tuntap add dev {name} mode tap` makes one, and \
             `ip addr add {}/{} dev {name}` gives it the host's address",
            setting.networks.v4_of(setting.host.0),
            setting.networks.v4.1
        ));
    }
    let flags = std::fs::read_to_string(format!("{about}/tun_flags")).unwrap_or_default();
    let Ok(flags) = u16::from_str_radix(flags.trim().trim_start_matches("0x"), 16) else {
        return Err(format!("\"{name}\" is neither a TUN nor a TAP device; `ip tuntap` lists those"));
    };
    let mac = std::fs::read_to_string(format!("{about}/address")).unwrap_or_default();
    let mac: Vec<u8> = mac.trim().split(':').filter_map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    let file = tun(name, flags & (TUN | TAP | SEVERAL_QUEUES))?;
    let control = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(|error| error.to_string())?;
    set_mtu_and_up(&control, name, setting.mtu)?;
    let is_tap = flags & TAP != 0;
    Ok(Device { file, mac: is_tap.then(|| mac.try_into().unwrap_or([0xFF; 6])) })
}

/// A TUN device in a network namespace, with addresses.
fn in_namespace(namespace: &str, name: &str, setting: Setting) -> Result<Device, String> {
    let path = format!("/var/run/netns/{namespace}");
    let place = File::open(&path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            format!("there is no network namespace \"{namespace}\": `ip netns add {namespace}` makes one")
        }
        _ => format!("{path}: {error}"),
    })?;
    let make = || {
        move_into_link_name_space(place.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|error| said(error, &format!("network namespace \"{namespace}\"")))?;
        let file = tun(name, TUN)?;
        let control = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(|error| error.to_string())?;
        let Networks { v4: (_, bits4), v6: (_, bits6) } = setting.networks;
        set(&control, SET_QUEUE, name, &QUEUE.to_ne_bytes())?;
        set(&control, SET_ADDRESS, name, &socket_address(setting.networks.v4_of(setting.host.0)))?;
        let mask = Ipv4Addr::from(u32::MAX.checked_shl(32 - u32::from(bits4)).unwrap_or(0));
        set(&control, SET_MASK, name, &socket_address(mask))?;
        set_mtu_and_up(&control, name, setting.mtu)?;
        // A kernel without IPv6 has no such socket, and needs no such address.
        if let Ok(control6) = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)) {
            let index = update(&control, GET_INDEX, name)?;
            let index = u32::from_ne_bytes([index[0], index[1], index[2], index[3]]);
            let address = setting.networks.v6_of(setting.host.0).octets();
            set_address6(&control6, Request6 { address, prefix: bits6.into(), index })
                .map_err(|error| said(error, &format!("the IPv6 address of {name}")))?;
        }
        Ok(Device { file, mac: None })
    };
    std::thread::scope(|scope| scope.spawn(make).join()).unwrap_or_else(|_| Err("its thread failed".to_owned()))
}

fn set_mtu_and_up(control: &UdpSocket, name: &str, mtu: u16) -> Result<(), String> {
    set(control, SET_MTU, name, &i32::from(mtu).to_ne_bytes())?;
    let flags = update(control, GET_FLAGS, name)?;
    let flags = u16::from_ne_bytes([flags[0], flags[1]]) | UP;
    set(control, SET_FLAGS, name, &flags.to_ne_bytes())
}

/// What an error of the system means for who wrote the scenario.
fn said(error: Errno, what: &str) -> String {
    match error {
        Errno::PERM | Errno::ACCESS => format!(
            "{what}: {error}. Attached hosts need the capability CAP_NET_ADMIN (and CAP_SYS_ADMIN to enter a network \
             namespace): run as root, or under `sudo`"
        ),
        Errno::BUSY => format!("{what}: another process has it open; end that, or name another device"),
        _ => format!("{what}: {error}"),
    }
}

/// Opens a TUN or TAP device by name, which is made if there is none. Frames have virtio headers.
fn tun(name: &str, kind: u16) -> Result<File, String> {
    let path = "/dev/net/tun";
    let nonblocking = OFlags::NONBLOCK.bits() as i32;
    let opened = OpenOptions::new().read(true).write(true).custom_flags(nonblocking).open(path);
    let file = opened.map_err(|error: io::Error| match error.kind() {
        ErrorKind::NotFound => format!("{path} is missing: `modprobe tun` brings it"),
        _ => error.raw_os_error().map_or(error.to_string(), |code| said(Errno::from_raw_os_error(code), path)),
    })?;
    let flags = kind | NO_INFORMATION | VIRTIO_HEADER;
    set(&file, SET_DEVICE, name, &flags.to_ne_bytes())?;
    set_offloads(&file).map_err(|error| said(error, &format!("offloads of {name}")))?;
    Ok(file)
}

/// `struct sockaddr_in` of Linux.
fn socket_address(address: Ipv4Addr) -> [u8; 16] {
    let mut socket = [0; 16];
    socket[..2].copy_from_slice(&2u16.to_ne_bytes());
    socket[4..8].copy_from_slice(&address.octets());
    socket
}

fn request(name: &str, value: &[u8]) -> Request {
    let mut request = Request { name: [0; 16], value: [0; 24] };
    // The last byte stays zero.
    let length = name.len().min(15);
    request.name[..length].copy_from_slice(&name.as_bytes()[..length]);
    request.value[..value.len()].copy_from_slice(value);
    request
}

/// Says something of a device.
fn set(to: &impl AsFd, code: Opcode, name: &str, value: &[u8]) -> Result<(), String> {
    call(to, code, &mut request(name, value)).map_err(|error| said(error, &format!("device {name}")))
}

/// Asks something of a device.
fn update(to: &impl AsFd, code: Opcode, name: &str) -> Result<[u8; 24], String> {
    let mut request = request(name, &[]);
    call(to, code, &mut request).map_err(|error| said(error, &format!("device {name}")))?;
    Ok(request.value)
}

#[expect(unsafe_code, reason = "a system call without a safe form")]
fn call(to: &impl AsFd, code: Opcode, request: &mut Request) -> Result<(), Errno> {
    // SAFETY: all of these read or write a `struct ifreq`, which `Request` is: 40 bytes, of which the kernel takes no
    // pointer further.
    unsafe {
        match code {
            SET_DEVICE => ioctl(to, Updater::<SET_DEVICE, Request>::new(request)),
            GET_FLAGS => ioctl(to, Updater::<GET_FLAGS, Request>::new(request)),
            SET_FLAGS => ioctl(to, Updater::<SET_FLAGS, Request>::new(request)),
            SET_ADDRESS => ioctl(to, Updater::<SET_ADDRESS, Request>::new(request)),
            SET_MASK => ioctl(to, Updater::<SET_MASK, Request>::new(request)),
            SET_MTU => ioctl(to, Updater::<SET_MTU, Request>::new(request)),
            GET_INDEX => ioctl(to, Updater::<GET_INDEX, Request>::new(request)),
            SET_QUEUE => ioctl(to, Updater::<SET_QUEUE, Request>::new(request)),
            _ => Err(Errno::NOSYS),
        }
    }
}

#[expect(unsafe_code, reason = "a system call without a safe form")]
fn set_address6(to: &impl AsFd, request: Request6) -> Result<(), Errno> {
    // SAFETY: on a socket for IPv6 it reads a `struct in6_ifreq`, which `Request6` is.
    unsafe { ioctl(to, Setter::<SET_ADDRESS, Request6>::new(request)) }
}

#[expect(unsafe_code, reason = "a system call without a safe form")]
fn set_offloads(to: &impl AsFd) -> Result<(), Errno> {
    // SAFETY: its argument is a number.
    unsafe { ioctl(to, IntegerSetter::<SET_OFFLOADS>::new_usize(OFFLOADS)) }
}
