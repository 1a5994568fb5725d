//! Captures of hosts: frames as their interfaces send and receive them, as pcapng.
//!
//! Each interface of a captured host is an interface of the file, named as in `fastpath replay`:
//! the host, or `host:eth1` if it has several. Time 0 of the network is 1970. Times of packets are
//! whole nanoseconds, rounded down; the comment of each has the exact one, in seconds:
//!
//! ```text
//! sent=1.000000000000
//! received=1.026000123456
//! ```

use fastpath_net::EdgeId;
use fastpath_units::Time;
use fastpath_wire::pcap::{Interface, LINKTYPE_ETHERNET, NgWriter};
use std::fmt::{self, Write as _};
use std::io::{self, BufWriter, Write};

const PS_PER_S: u64 = 1_000_000_000_000;

/// Which way a frame passes an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    Sent,
    Received,
}

/// An interface that may be captured.
pub(crate) struct NamedInterface {
    pub(crate) name: String,
    pub(crate) description: String,
}

/// A capture under way. The first error ends it.
pub(crate) struct HostCapture {
    out: io::Result<NgWriter<BufWriter<Box<dyn Write + Send>>>>,
    /// By edge: its interface in the file.
    interfaces: Vec<Option<u32>>,
    comment: String,
}

impl HostCapture {
    /// Starts a file with the named interfaces, by edge.
    pub(crate) fn new(out: Box<dyn Write + Send>, named: &[Option<NamedInterface>]) -> HostCapture {
        let mut interfaces = Vec::with_capacity(named.len());
        let start = || {
            let mut out =
                NgWriter::new(BufWriter::new(out), concat!("fastpath ", env!("CARGO_PKG_VERSION")))?;
            for named in named {
                let added = named.as_ref().map(|NamedInterface { name, description }| {
                    out.add_interface(&Interface { link_type: LINKTYPE_ETHERNET, name, description })
                });
                interfaces.push(added.transpose()?);
            }
            Ok(out)
        };
        HostCapture { out: start(), interfaces, comment: String::new() }
    }

    /// Writes a frame that passes an edge.
    pub(crate) fn take(&mut self, way: Way, at: Time, edge: EdgeId, frame: &[u8]) {
        let (Ok(out), Some(Some(interface))) = (&mut self.out, self.interfaces.get(edge.0 as usize)) else {
            return;
        };
        let word = match way {
            Way::Sent => "sent",
            Way::Received => "received",
        };
        let ps = at.as_ps();
        self.comment.clear();
        write!(self.comment, "{word}={}.{:012}", ps / PS_PER_S, ps % PS_PER_S).expect("writing to a string");
        let written = out.write_packet(*interface, at.as_ns(), frame.len() as u32, frame, &self.comment);
        if let Err(error) = written {
            self.out = Err(error);
        }
    }

    /// Flushes the file.
    ///
    /// # Errors
    /// The first error of writing it since the last call.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match &mut self.out {
            Ok(out) => out.flush(),
            Err(error) => {
                let ended = io::Error::other("an earlier error has ended the capture");
                Err(std::mem::replace(error, ended))
            }
        }
    }
}

impl fmt::Debug for HostCapture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostCapture").field("interfaces", &self.interfaces).finish_non_exhaustive()
    }
}
