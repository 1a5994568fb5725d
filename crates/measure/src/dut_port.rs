//! Opens the port of a device under test (DUT, RFC 2544) on a real interface, and the tester's port
//! that the DUT is attached to. The source and the sink use the tester's port.
//!
//! ```text
//!  source ─▶ tester's port ══ veth pair, or a cable between two interfaces ══ DUT's port ─▶ DUT
//!  sink   ◀─                                                                            ◀─
//! ```
//!
//! Each end of a veth pair is in its own network namespace, so that only measured frames pass.

use super::pipeline::{End, send};
use fastpath_engine::Notice;
use fastpath_engine::port::{AfPacket, AfXdp, Burst, OpenContext, OpenError, Port, XdpMemory, open};
use fastpath_lab::namespace::{Namespace, NotPermitted, gain_privilege};
use fastpath_lab::netlink::{LinkParameters, Netlink};
use fastpath_net::{Frame, FramePool};
use fastpath_spec::{ParsePortNameError, PortName};
use fastpath_units::Time;
use fastpath_wire::MacAddr;
use nix::net::if_::if_nametoindex;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::str::FromStr;

/// Interface names of the veth pair: the DUT's end, then the tester's.
const VETHS: [&str; 2] = ["dut", "far"];
/// MTU headroom for a VLAN tag, bytes.
const MTU_SPARE: u32 = 8;
/// Smallest MTU of the veth pair, bytes: the Ethernet default.
const MTU_USUAL: u32 = 1500;
/// Bytes of an Ethernet header.
const HEADERS: u32 = 14;

/// How the DUT is attached to the tester.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DutAttachment {
    /// A veth pair. The DUT's port is a packet socket.
    Veth,
    /// A veth pair. The DUT's port is an AF_XDP socket.
    Xdp,
    /// Two ports of this machine connected by a cable: the DUT's, then the tester's.
    Interfaces(PortName, PortName),
}

/// The text does not name a DUT attachment.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ParseAttachmentError {
    /// The text has none of the known forms.
    #[error("port {0:?}: write memory, veth, xdp, or DEVICE+SOURCE (two ports connected by a cable)")]
    Form(String),
    /// One of the two ports is not a port name.
    #[error("{0}: {instead}", instead = .0.instead())]
    Port(#[from] ParsePortNameError),
}

impl FromStr for DutAttachment {
    type Err = ParseAttachmentError;
    fn from_str(text: &str) -> Result<DutAttachment, ParseAttachmentError> {
        match text.split_once('+') {
            None if text == "veth" => Ok(DutAttachment::Veth),
            None if text == "xdp" => Ok(DutAttachment::Xdp),
            Some((device, source)) if !device.is_empty() && !source.is_empty() => {
                let (device, source): (PortName, PortName) = (device.parse()?, source.parse()?);
                match (device.interface(), source.interface()) {
                    (Some(dut), Some(tester)) if dut != tester => {
                        Ok(DutAttachment::Interfaces(device, source))
                    }
                    _ => Err(ParseAttachmentError::Form(text.to_owned())),
                }
            }
            _ => Err(ParseAttachmentError::Form(text.to_owned())),
        }
    }
}

impl DutAttachment {
    /// Parses an attachment; none for `memory`.
    ///
    /// # Errors
    /// [`ParseAttachmentError`] for other text.
    pub fn parse_or_memory(text: &str) -> Result<Option<DutAttachment>, ParseAttachmentError> {
        if text == "memory" { Ok(None) } else { text.parse().map(Some) }
    }
}

/// The reason why the DUT cannot be attached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DutPortError {
    /// Network namespaces are not permitted here.
    #[error(transparent)]
    NotPermitted(#[from] NotPermitted),
    /// An interface cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The kernel refused a step.
    #[error("{what}: {source}")]
    Kernel {
        /// The step that failed.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

/// The DUT's port, attached to the tester's. Dropping it removes the interfaces created for it.
pub struct DutPort {
    device: Box<dyn Port>,
    tester: TesterPort,
}

impl DutPort {
    /// Attaches the DUT to the tester, for frames of up to `frame` bytes. A process without the
    /// privilege to create namespaces first becomes root in a new user namespace. The process must
    /// be single-threaded for that.
    ///
    /// # Errors
    /// Returns [`DutPortError`] if the interfaces cannot be created or opened.
    pub fn open(attachment: &DutAttachment, frame: usize) -> Result<DutPort, DutPortError> {
        let (device, tester, namespaces): (Box<dyn Port>, Box<dyn Port>, _) = match attachment {
            DutAttachment::Interfaces(device, source) => {
                let notice = Notice::to_stderr();
                let mut context = OpenContext::new([device.clone(), source.clone()], &notice);
                (open(device, &mut context)?, open(source, &mut context)?, Vec::new())
            }
            DutAttachment::Veth | DutAttachment::Xdp => {
                gain_privilege()?;
                let namespaces = [Namespace::new()?, Namespace::new()?];
                connect(&namespaces, (frame as u32).saturating_sub(HEADERS) + MTU_SPARE)?;
                let [near, away] = &namespaces;
                let device = in_namespace(near, "opening the DUT's port", || open_device(attachment))??;
                let tester = in_namespace(away, "opening the tester's port", || AfPacket::open(VETHS[1]))??;
                (device, Box::new(tester), Vec::from(namespaces))
            }
        };
        let ends = RefCell::new(Ends {
            port: tester,
            pool: FramePool::default(),
            burst: Burst::new(),
            out: VecDeque::new(),
        });
        Ok(DutPort { device, tester: TesterPort { ends, namespaces } })
    }

    /// Splits into the DUT's port and the tester's.
    pub(super) fn into_parts(self) -> (Box<dyn Port>, TesterPort) {
        (self.device, self.tester)
    }

    /// Describes the DUT's port and the features that the kernel granted it.
    pub fn kind(&self) -> String {
        self.device.kind()
    }
}

fn open_device(attachment: &DutAttachment) -> Result<Box<dyn Port>, OpenError> {
    let name = VETHS[0];
    Ok(match attachment {
        DutAttachment::Xdp => {
            Box::new(AfXdp::open(name, None, &mut XdpMemory::for_ports([name].into_iter()))?)
        }
        _ => Box::new(AfPacket::open(name)?),
    })
}

/// Connects two namespaces by a veth pair, brings both ends up and disables IPv6 on them.
fn connect([near, away]: &[Namespace; 2], mtu: u32) -> Result<(), DutPortError> {
    let created = in_namespace(near, "creating a veth pair", || {
        Netlink::open()?.add_veth(VETHS[0], VETHS[1], away.as_fd())
    })?;
    created.map_err(|source| DutPortError::Kernel { what: "creating a veth pair", source })?;
    for (namespace, name) in [near, away].into_iter().zip(VETHS) {
        let up = || {
            // The write fails if the kernel has no IPv6. Then IPv6 sends no frames to suppress.
            let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
            let parameters = LinkParameters { mtu: Some(mtu.max(MTU_USUAL)), ..LinkParameters::default() };
            Netlink::open()?.bring_up(if_nametoindex(name)?, parameters)
        };
        let what = "bringing up a veth interface";
        in_namespace(namespace, what, up)?.map_err(|source| DutPortError::Kernel { what, source })?;
    }
    Ok(())
}

/// Runs `work` in `namespace`. `what` names the step in the error.
fn in_namespace<T: Send>(
    namespace: &Namespace,
    what: &'static str,
    work: impl FnOnce() -> T + Send,
) -> Result<T, DutPortError> {
    namespace.within(work).map_err(|source| DutPortError::Kernel { what, source })
}

/// The tester's port and the namespaces created for it. The source sends and the sink receives
/// through this port.
pub(super) struct TesterPort {
    ends: RefCell<Ends>,
    namespaces: Vec<Namespace>,
}

impl TesterPort {
    /// Returns whether the attachment is a veth pair created for the measurement. A veth pair
    /// delivers a sent frame immediately.
    pub(super) fn is_veth(&self) -> bool {
        !self.namespaces.is_empty()
    }
}

/// The tester's port and its buffers.
struct Ends {
    port: Box<dyn Port>,
    pool: FramePool,
    burst: Burst,
    out: VecDeque<Frame>,
}

impl End for TesterPort {
    fn give<'a>(&self, frames: impl IntoIterator<Item = &'a [u8]>) -> usize {
        let Ends { port, pool, out, .. } = &mut *self.ends.borrow_mut();
        out.extend(frames.into_iter().filter_map(|bytes| pool.insert(bytes)));
        send(&mut **port, Time::ZERO, pool, out)
    }

    fn take(&self) -> usize {
        let Ends { port, pool, burst, .. } = &mut *self.ends.borrow_mut();
        let mut measured = 0;
        loop {
            let _ = port.rx_burst(Time::ZERO, pool, burst);
            if burst.is_empty() {
                return measured;
            }
            for frame in burst.drain() {
                measured += usize::from(is_measured(pool.bytes(&frame)));
                pool.free(frame);
            }
        }
    }
}

/// Returns whether a frame belongs to the measurement. Measured frames have unicast destinations;
/// the kernel's own frames are multicast.
fn is_measured(bytes: &[u8]) -> bool {
    bytes.first_chunk().is_some_and(|to| !MacAddr(*to).is_multicast())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Opens a DUT port. If that is not permitted, returns `None` and reports `test` as skipped.
    pub(in super::super) fn open_or_skip(attachment: &DutAttachment, test: &str) -> Option<DutPort> {
        match DutPort::open(attachment, 1518) {
            Ok(dut_port) => return Some(dut_port),
            Err(DutPortError::NotPermitted(why)) => crate::skip(test, &why.to_string()),
            Err(DutPortError::Open(why)) if *attachment == DutAttachment::Xdp => {
                crate::skip(test, &why.to_string())
            }
            Err(other) => panic!("{attachment:?}: {other}"),
        }
        None
    }

    #[test]
    fn attachments_are_parsed() {
        assert_eq!("veth".parse(), Ok(DutAttachment::Veth));
        assert_eq!("xdp".parse(), Ok(DutAttachment::Xdp));
        let ports = ["xdp:eth1", "eth2"].map(|port| port.parse().unwrap());
        let [device, source] = ports;
        assert_eq!("xdp:eth1+eth2".parse(), Ok(DutAttachment::Interfaces(device, source)));
        let error = "dpdk:eth1+eth2".parse::<DutAttachment>().unwrap_err().to_string();
        assert!(
            error.starts_with("'dpdk' is not a kind of port: write IFACE, packet:IFACE, xdp:"),
            "{error}"
        );
        for bad in ["", "eth1", "eth1+", "eth1+eth1"] {
            assert!(bad.parse::<DutAttachment>().unwrap_err().to_string().contains("DEVICE+SOURCE"), "{bad}");
        }
    }
}
