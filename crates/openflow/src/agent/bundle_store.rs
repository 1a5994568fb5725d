//! The bundles that a controller has opened. They go with its connection, and those that it leaves
//! alone are dropped.

use crate::message::{BundleFault, Message};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Most bundles of a connection.
const BUNDLES_MAX: usize = 64;
/// Most bytes of the messages of all its bundles.
const BYTES_MAX: usize = 64 << 20;
/// A bundle is dropped when nothing was said of it for this long (Open vSwitch: 10 s).
const IDLE_MAX: Duration = Duration::from_secs(10);
/// OFPBF_ATOMIC and OFPBF_ORDERED. Every bundle here is both.
const FLAGS: u16 = 3;

/// The bundles of a connection.
#[derive(Debug, Default)]
pub(super) struct BundleStore {
    open: BTreeMap<u32, OpenBundle>,
}

#[derive(Debug)]
struct OpenBundle {
    flags: u16,
    is_closed: bool,
    bytes: usize,
    messages: Vec<BundledMessage>,
    used_at: Instant,
}

/// A message of a bundle.
#[derive(Debug)]
pub(super) struct BundledMessage {
    pub(super) xid: u32,
    /// Its beginning, for an error message.
    pub(super) head: Vec<u8>,
    pub(super) message: Message,
}

impl BundleStore {
    /// Opens a bundle.
    pub(super) fn open(&mut self, now: Instant, id: u32, flags: u16) -> Result<(), BundleFault> {
        self.open.retain(|_, bundle| now.duration_since(bundle.used_at) < IDLE_MAX);
        if flags & !FLAGS != 0 {
            return Err(BundleFault::BadFlags(flags));
        }
        if self.open.contains_key(&id) {
            // As in Open vSwitch, that ends the bundle.
            self.open.remove(&id);
            return Err(BundleFault::Exists(id));
        }
        if self.open.len() >= BUNDLES_MAX {
            return Err(BundleFault::TooMany(BUNDLES_MAX));
        }
        let bundle = OpenBundle { flags, is_closed: false, bytes: 0, messages: Vec::new(), used_at: now };
        self.open.insert(id, bundle);
        Ok(())
    }

    /// Adds a message of `len` bytes. A bundle that is not open is opened (§7.3.9.6).
    pub(super) fn add(
        &mut self,
        now: Instant,
        (id, flags): (u32, u16),
        len: usize,
        message: BundledMessage,
    ) -> Result<(), BundleFault> {
        if !self.open.contains_key(&id) {
            self.open(now, id, flags)?;
        }
        let bytes: usize = self.open.values().map(|bundle| bundle.bytes).sum();
        let bundle = self.used(now, id, flags)?;
        if bundle.is_closed {
            return Err(BundleFault::Closed(id));
        }
        if bytes + len > BYTES_MAX {
            return Err(BundleFault::TooLarge(BYTES_MAX));
        }
        bundle.bytes += len;
        bundle.messages.push(message);
        Ok(())
    }

    /// Closes a bundle: nothing can be added to it any more.
    pub(super) fn close(&mut self, now: Instant, id: u32, flags: u16) -> Result<(), BundleFault> {
        let bundle = self.used(now, id, flags)?;
        if std::mem::replace(&mut bundle.is_closed, true) { Err(BundleFault::Closed(id)) } else { Ok(()) }
    }

    /// Takes the messages of a bundle, which ends it.
    pub(super) fn take(
        &mut self,
        now: Instant,
        id: u32,
        flags: u16,
    ) -> Result<Vec<BundledMessage>, BundleFault> {
        self.used(now, id, flags)?;
        self.discard(id)
    }

    /// Ends a bundle, whatever its flags.
    pub(super) fn discard(&mut self, id: u32) -> Result<Vec<BundledMessage>, BundleFault> {
        self.open.remove(&id).map(|bundle| bundle.messages).ok_or(BundleFault::BadId(id))
    }

    fn used(&mut self, now: Instant, id: u32, flags: u16) -> Result<&mut OpenBundle, BundleFault> {
        let bundle = self.open.get_mut(&id).ok_or(BundleFault::BadId(id))?;
        if bundle.flags != flags {
            return Err(BundleFault::BadFlags(flags));
        }
        bundle.used_at = now;
        Ok(bundle)
    }
}
