//! A device's port on a real interface, and the far end of the cable where the source and the sink
//! are.
//!
//! ```text
//!  source ─▶ far end ══ veth pair, or a cable between two interfaces ══ device's port ─▶ device
//!  sink   ◀─                                                                         ◀─
//! ```
//!
//! Both ends of a veth pair are alone in a namespace of their own, so nothing but what is measured
//! passes.

use super::pipeline::{End, send};
use fastpath_engine::port::{AfPacket, AfXdp, Burst, OpenError, Port, XdpMemory};
use fastpath_lab::namespace::{Namespace, NotPermitted, gain_privilege};
use fastpath_lab::netlink::{LinkParameters, Netlink};
use fastpath_net::{Frame, FramePool};
use fastpath_units::Time;
use fastpath_wire::MacAddr;
use nix::net::if_::if_nametoindex;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::num::NonZeroUsize;
use std::str::FromStr;

const POOL_LIMIT: NonZeroUsize = NonZeroUsize::new(64 << 20).unwrap();
/// The interfaces of a veth pair, by end.
const VETHS: [&str; 2] = ["dut", "far"];
/// Room a tag needs beyond the largest frame without headers.
const MTU_SPARE: u32 = 8;
const MTU_USUAL: u32 = 1500;
const HEADERS: u32 = 14;

/// What joins source and device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cable {
    /// A veth pair, the device's port a packet socket.
    Veth,
    /// A veth pair, the device's port an AF_XDP socket.
    Xdp,
    /// Two interfaces of this machine with a cable between: the device's, then the source's.
    Interfaces(String, String),
}

/// Not a cable.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("port {0:?}: write memory, veth, xdp, or DEVICE+SOURCE: two interfaces joined by a cable")]
pub struct NoCable(String);

impl FromStr for Cable {
    type Err = NoCable;
    fn from_str(text: &str) -> Result<Cable, NoCable> {
        match text.split_once('+') {
            None if text == "veth" => Ok(Cable::Veth),
            None if text == "xdp" => Ok(Cable::Xdp),
            Some((device, source)) if !device.is_empty() && !source.is_empty() && device != source => {
                Ok(Cable::Interfaces(device.to_owned(), source.to_owned()))
            }
            _ => Err(NoCable(text.to_owned())),
        }
    }
}

/// Why there is no wire.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// No namespaces on this machine.
    #[error(transparent)]
    NotPermitted(#[from] NotPermitted),
    /// An interface cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The kernel refused a step.
    #[error("{what}: {source}")]
    Kernel {
        /// The step.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}

/// A device's port and what it leads to. Dropping it removes what was made for it.
pub struct Wire {
    device: Box<dyn Port>,
    far: Far,
}

impl Wire {
    /// Joins a device to the far end, for frames of up to `frame` bytes. Without the privilege for
    /// namespaces the process first becomes root in a user namespace of its own, for which it must
    /// still be single-threaded.
    ///
    /// # Errors
    /// [`WireError`] where interfaces cannot be made or opened.
    pub fn open(cable: &Cable, frame: usize) -> Result<Wire, WireError> {
        let (device, far, namespaces): (Box<dyn Port>, _, _) = match cable {
            Cable::Interfaces(device, source) => {
                (Box::new(AfPacket::open(device)?), AfPacket::open(source)?, Vec::new())
            }
            Cable::Veth | Cable::Xdp => {
                gain_privilege()?;
                let namespaces = [Namespace::new()?, Namespace::new()?];
                join(&namespaces, (frame as u32).saturating_sub(HEADERS) + MTU_SPARE)?;
                let [near, away] = &namespaces;
                let device = inside(near, "opening the device's port", || open_device(cable))??;
                let far = inside(away, "opening the source's port", || AfPacket::open(VETHS[1]))??;
                (device, far, Vec::from(namespaces))
            }
        };
        let ends = RefCell::new(Ends {
            port: Box::new(far),
            pool: FramePool::new(POOL_LIMIT),
            burst: Burst::new(),
            out: VecDeque::new(),
        });
        Ok(Wire { device, far: Far { ends, namespaces } })
    }

    /// The device's port, and the rest.
    pub(super) fn apart(self) -> (Box<dyn Port>, Far) {
        (self.device, self.far)
    }

    /// What the device's port is and what it got from the kernel.
    pub fn kind(&self) -> String {
        self.device.kind()
    }
}

fn open_device(cable: &Cable) -> Result<Box<dyn Port>, OpenError> {
    let name = VETHS[0];
    Ok(match cable {
        Cable::Xdp => Box::new(AfXdp::open(name, None, &mut XdpMemory::for_ports([name].into_iter()))?),
        _ => Box::new(AfPacket::open(name)?),
    })
}

/// A veth pair between two namespaces, up and silent.
fn join([near, away]: &[Namespace; 2], mtu: u32) -> Result<(), WireError> {
    let made =
        inside(near, "making a veth pair", || Netlink::open()?.add_veth(VETHS[0], VETHS[1], away.as_fd()))?;
    made.map_err(|source| WireError::Kernel { what: "making a veth pair", source })?;
    for (namespace, name) in [near, away].into_iter().zip(VETHS) {
        let up = || {
            // It fails where IPv6 is not in the kernel: then there is nothing to silence.
            let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
            let parameters = LinkParameters { mtu: Some(mtu.max(MTU_USUAL)), ..LinkParameters::default() };
            Netlink::open()?.bring_up(if_nametoindex(name)?, parameters)
        };
        let what = "bringing a veth up";
        inside(namespace, what, up)?.map_err(|source| WireError::Kernel { what, source })?;
    }
    Ok(())
}

fn inside<T: Send>(
    namespace: &Namespace,
    what: &'static str,
    work: impl FnOnce() -> T + Send,
) -> Result<T, WireError> {
    namespace.within(work).map_err(|source| WireError::Kernel { what, source })
}

/// Where the source sends and the sink receives, and what the wire was made of.
pub(super) struct Far {
    ends: RefCell<Ends>,
    namespaces: Vec<Namespace>,
}

impl Far {
    /// Whether the wire was made for the measurement: frames are across as soon as they are sent.
    pub(super) fn is_ours(&self) -> bool {
        !self.namespaces.is_empty()
    }
}

struct Ends {
    port: Box<dyn Port>,
    pool: FramePool,
    burst: Burst,
    out: VecDeque<Frame>,
}

impl End for Far {
    fn give<'a>(&self, frames: impl IntoIterator<Item = &'a [u8]>) -> usize {
        let Ends { port, pool, out, .. } = &mut *self.ends.borrow_mut();
        out.extend(frames.into_iter().filter_map(|bytes| pool.insert(bytes)));
        send(&mut **port, Time::ZERO, pool, out)
    }

    fn take(&self) -> usize {
        let Ends { port, pool, burst, .. } = &mut *self.ends.borrow_mut();
        let mut ours = 0;
        loop {
            let _ = port.rx_burst(Time::ZERO, pool, burst);
            if burst.is_empty() {
                return ours;
            }
            for frame in burst.drain() {
                ours += usize::from(is_measured(pool.bytes(&frame)));
                pool.free(frame);
            }
        }
    }
}

/// Measured frames go to one station each; what the kernel says unasked goes to many.
fn is_measured(bytes: &[u8]) -> bool {
    bytes.first_chunk().is_some_and(|to| !MacAddr(*to).is_multicast())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A wire, or none where this machine permits none and `test` is skipped.
    pub(in super::super) fn open_or_skip(cable: &Cable, test: &str) -> Option<Wire> {
        match Wire::open(cable, 1518) {
            Ok(wire) => return Some(wire),
            Err(WireError::NotPermitted(why)) => crate::skip(test, &why.to_string()),
            Err(WireError::Open(why)) if *cable == Cable::Xdp => crate::skip(test, &why.to_string()),
            Err(other) => panic!("{cable:?}: {other}"),
        }
        None
    }

    #[test]
    fn cables_are_told_apart() {
        assert_eq!("veth".parse(), Ok(Cable::Veth));
        assert_eq!("xdp".parse(), Ok(Cable::Xdp));
        assert_eq!("eth1+eth2".parse(), Ok(Cable::Interfaces("eth1".to_owned(), "eth2".to_owned())));
        for bad in ["", "eth1", "eth1+", "eth1+eth1"] {
            assert!(bad.parse::<Cable>().unwrap_err().to_string().contains("DEVICE+SOURCE"), "{bad}");
        }
    }
}
