//! Bundles of changes in OpenFlow 1.3: experimenter messages of the ONF (extension EXT-230), as
//! `ovs-ofctl --bundle` sends them. OpenFlow 1.4 §7.3.9 has the same bodies.

use super::bundle_fault::BundleFault;
use super::bytes::{ByteReader, Write};
use super::fault::Fault;
use super::{HEADER_LEN, Header, Message};

/// The experimenter (ONF_EXPERIMENTER_ID).
pub(crate) const ONF: u32 = 0x4f4e_4600;
/// ONF_ET_BUNDLE_CONTROL.
pub(crate) const CONTROL: u32 = 2300;
/// ONF_ET_BUNDLE_ADD_MESSAGE.
pub(crate) const ADD: u32 = 2301;

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

impl<'a> BundleMessage<'a> {
    /// Returns its flags (OFPBF_).
    pub(crate) fn flags(&self) -> u16 {
        match self {
            BundleMessage::Control { flags, .. } | BundleMessage::Add { flags, .. } => *flags,
        }
    }

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
