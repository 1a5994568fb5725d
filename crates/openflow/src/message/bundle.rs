//! Bundles of changes in OpenFlow 1.3: experimenter messages of the ONF (extension EXT-230), as
//! `ovs-ofctl --bundle` sends them. OpenFlow 1.4 §7.3.9 has the same bodies.

use super::bytes::{ByteReader, Write};
use super::fault::Fault;
use super::{HEADER_LEN, Header, Message};

/// The experimenter (ONF_EXPERIMENTER_ID).
pub(crate) const ONF: u32 = 0x4f4e_4600;
/// ONF_ET_BUNDLE_CONTROL.
const CONTROL: u32 = 2300;
/// ONF_ET_BUNDLE_ADD_MESSAGE.
const ADD: u32 = 2301;
/// The first error number of the extension.
const FIRST_ERROR: u16 = 2300;

/// A message about a bundle, to the switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum BundleMessage<'a> {
    /// Opens, closes, commits or discards it.
    Control { id: u32, step: BundleStep, flags: u16 },
    /// Adds a message, which has a header of its own.
    Add { id: u32, flags: u16, message: &'a [u8] },
}

/// What a control message asks for. The numbers of its requests are even; that of a reply is one
/// more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub(crate) enum BundleStep {
    Open = 0,
    Close = 2,
    Commit = 4,
    Discard = 6,
}

/// Why a bundle is refused, with the number that the specification gives it (OFPBFC_).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BundleFault {
    /// It is not open.
    #[error("bundle {0} is not open")]
    BadId(u32),
    /// It is open already.
    #[error("bundle {0} is open already")]
    Exists(u32),
    /// It is closed.
    #[error("bundle {0} is closed")]
    Closed(u32),
    /// There are too many.
    #[error("a controller may have at most {0} bundles")]
    TooMany(usize),
    /// The step is unknown.
    #[error("bundle control {0} is unknown")]
    BadType(u16),
    /// The flags are unknown, or not those with which it was opened.
    #[error("bundle flags {0:#x} are unknown, or differ from those with which it was opened")]
    BadFlags(u16),
    /// A message in it does not end with it.
    #[error("a message in a bundle has the wrong length")]
    BadLen,
    /// A message in it has another transaction id.
    #[error("a message in a bundle has another transaction id")]
    BadXid,
    /// It may not be in a bundle.
    #[error("a message of this type may not be in a bundle")]
    Unsupported,
    /// The messages take too much memory.
    #[error("the bundles of a controller may have at most {0} bytes")]
    TooLarge(usize),
    /// A message in it was refused.
    #[error("a message of the bundle was refused: nothing has changed")]
    Failed,
}

impl BundleFault {
    /// Returns the number of the error (an experimenter type).
    pub(crate) const fn number(self) -> u16 {
        FIRST_ERROR
            + match self {
                BundleFault::BadId(_) => 2,
                BundleFault::Exists(_) => 3,
                BundleFault::Closed(_) => 4,
                BundleFault::TooMany(_) => 5,
                BundleFault::BadType(_) => 6,
                BundleFault::BadFlags(_) => 7,
                BundleFault::BadLen => 8,
                BundleFault::BadXid => 9,
                BundleFault::Unsupported => 10,
                BundleFault::TooLarge(_) => 12,
                BundleFault::Failed => 13,
            }
    }
}

impl<'a> BundleMessage<'a> {
    /// Reads the body of an experimenter message of the ONF with transaction id `xid`.
    pub(crate) fn read(xid: u32, kind: u32, data: &'a [u8]) -> Result<BundleMessage<'a>, Fault> {
        let mut r = ByteReader::new(data, Fault::BadLen);
        match kind {
            CONTROL => {
                let (id, step, flags) = (r.u32()?, r.u16()?, r.u16()?);
                let step = match step {
                    0 => BundleStep::Open,
                    2 => BundleStep::Close,
                    4 => BundleStep::Commit,
                    6 => BundleStep::Discard,
                    other => return Err(BundleFault::BadType(other).into()),
                };
                Ok(BundleMessage::Control { id, step, flags })
            }
            ADD => {
                let id = r.u32()?;
                r.skip(2)?;
                let (flags, rest) = (r.u16()?, r.rest());
                let header = Header::read(rest).ok_or(BundleFault::BadLen)?;
                let len = usize::from(header.len);
                let message = rest.get(..len).filter(|_| len >= HEADER_LEN).ok_or(BundleFault::BadLen)?;
                // What follows is at most its padding, and properties, of which there are none.
                if rest.len() - len >= 8 {
                    return Err(BundleFault::BadLen.into());
                }
                if header.xid != xid {
                    return Err(BundleFault::BadXid.into());
                }
                Ok(BundleMessage::Add { id, flags, message })
            }
            other => Err(Fault::BadSubtype(other)),
        }
    }
}

/// Returns the reply to a control message.
pub(crate) fn bundle_reply(id: u32, step: BundleStep, flags: u16) -> Message {
    let mut data = Vec::with_capacity(8);
    data.u32(id);
    data.u16(step as u16 + 1);
    data.u16(flags);
    Message::Experimenter { experimenter: ONF, kind: CONTROL, data }
}
