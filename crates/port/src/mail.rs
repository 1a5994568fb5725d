//! Frames that pass from one worker to another, where a network is cut. No worker waits: one that
//! finds a mailbox in use comes back in the next iteration.
//!
//! ```text
//!  sender ──frames, each with its due time──▶ mailbox ──▶ receiver
//!         └─ rings if the receiver would sleep past the first of them
//! ```

use fastpath_net::Crossings;
use fastpath_units::Time;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex};

/// The mailboxes of all workers of a network, one from each to each.
pub struct MailRoom {
    boxes: Vec<MailBox>,
    receivers: Vec<Receiver>,
    /// A mailbox takes no more while it has this many bytes.
    bytes_max: usize,
}

/// On cache lines of its own: others change while it is looked at.
#[derive(Default)]
#[repr(align(128))]
struct MailBox {
    has_mail: AtomicBool,
    mail: Mutex<Mail>,
}

#[derive(Default)]
struct Mail {
    crossings: Crossings,
    /// The version of the topology whose numbers they have.
    version: u64,
}

#[repr(align(128))]
struct Receiver {
    /// Until when it sleeps, in picoseconds; 0 while it is awake.
    sleeps_until: AtomicU64,
    wake: Box<dyn Fn() + Send + Sync>,
}

/// What became of frames that were to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Posted {
    /// The mailbox has them.
    Sent,
    /// The mailbox is in use, or has frames of another version of the topology.
    Later,
    /// The mailbox is full.
    Full,
}

impl MailRoom {
    /// Creates the mailboxes between the workers that these functions wake.
    pub fn new(wakers: Vec<Box<dyn Fn() + Send + Sync>>, bytes_max: usize) -> MailRoom {
        let boxes = std::iter::repeat_with(MailBox::default).take(wakers.len().pow(2)).collect();
        let receiver = |wake| Receiver { sleeps_until: AtomicU64::new(0), wake };
        MailRoom { boxes, receivers: wakers.into_iter().map(receiver).collect(), bytes_max }
    }
}

/// The place of one worker in the mail room.
pub struct Post {
    room: Arc<MailRoom>,
    part: usize,
    /// The version of the topology that the worker runs.
    version: u64,
}

impl Post {
    /// The place of the worker of a part.
    pub fn new(room: Arc<MailRoom>, part: usize) -> Post {
        Post { room, part, version: 0 }
    }

    /// The number of workers.
    pub fn count(&self) -> usize {
        self.room.receivers.len()
    }

    /// The part of the worker.
    pub fn part(&self) -> usize {
        self.part
    }

    /// The worker runs the next version of the topology.
    pub fn follow_change(&mut self) {
        self.version += 1;
    }

    fn mailbox(&self, from: usize, to: usize) -> &MailBox {
        &self.room.boxes[from * self.count() + to]
    }

    /// Sends frames to the worker of another part, and leaves `crossings` empty if it has them.
    pub fn send(&self, to: usize, crossings: &mut Crossings) -> Posted {
        let Some(first_at) = crossings.first_at() else { return Posted::Sent };
        let mailbox = self.mailbox(self.part, to);
        {
            let Ok(mut mail) = mailbox.mail.try_lock() else { return Posted::Later };
            if mail.crossings.is_empty() {
                mail.version = self.version;
            } else if mail.version != self.version {
                return Posted::Later;
            } else if mail.crossings.byte_len() > self.room.bytes_max {
                return Posted::Full;
            }
            mail.crossings.append(crossings);
            mailbox.has_mail.store(true, Ordering::Release);
        }
        // Either the receiver sees the mail before it sleeps, or it is seen here that it sleeps.
        fence(Ordering::SeqCst);
        let receiver = &self.room.receivers[to];
        if receiver.sleeps_until.load(Ordering::Relaxed) > first_at.as_ps()
            && receiver.sleeps_until.swap(0, Ordering::Relaxed) > 0
        {
            (receiver.wake)();
        }
        Posted::Sent
    }

    /// Exchanges `crossings`, which are empty, for the mail from a part. Returns whether they have
    /// the numbers of the topology before the latest change; `None` without mail. Mail with the
    /// numbers of a topology that is still to come stays.
    #[inline]
    pub fn take(&self, from: usize, crossings: &mut Crossings) -> Option<bool> {
        let mailbox = self.mailbox(from, self.part);
        if !mailbox.has_mail.load(Ordering::Acquire) {
            return None;
        }
        let mut mail = mailbox.mail.try_lock().ok()?;
        if mail.version > self.version {
            return None;
        }
        std::mem::swap(&mut mail.crossings, crossings);
        mailbox.has_mail.store(false, Ordering::Release);
        Some(mail.version < self.version)
    }

    /// Says that the worker is about to sleep until `until`. Returns false if it has mail.
    pub fn fall_asleep(&self, until: Time) -> bool {
        let sleeps_until = &self.room.receivers[self.part].sleeps_until;
        sleeps_until.store(until.as_ps(), Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let has_mail = |from| self.mailbox(from, self.part).has_mail.load(Ordering::Relaxed);
        let sleeps = !(0..self.count()).any(has_mail);
        if !sleeps {
            self.wake_up();
        }
        sleeps
    }

    /// Says that the worker is awake.
    pub fn wake_up(&self) {
        self.room.receivers[self.part].sleeps_until.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "mail_tests.rs"]
mod tests;
