//! Watches the interfaces of an attached host, and attaches it again when its namespace is back.

use super::{Attachment, Configuration, parked_name};
use crate::state::lab_files::DETACHED;
use fastpath_engine::Notice;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Time between two attempts to attach a host again: at first, and at most.
const RETRY: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(5)];

/// What happens to an attached host.
#[derive(Debug)]
pub(crate) enum AttachEvent {
    /// The interface with this number was removed.
    Removed(usize),
    /// It has other routes or neighbours from now on.
    Changed(Box<Configuration>),
    /// The lab, or the host in it, ends.
    End,
}

/// The thread that attaches a host again. It ends on drop.
#[derive(Debug)]
pub(crate) struct AttachWatch {
    events: Sender<AttachEvent>,
    thread: Option<JoinHandle<()>>,
}

/// The hosts of a lab whose namespace is gone, and the file that says so to other processes.
#[derive(Debug)]
pub(crate) struct DetachedHosts {
    file: PathBuf,
    names: Mutex<BTreeSet<String>>,
}

impl DetachedHosts {
    /// None of the lab with this state directory.
    pub(crate) fn none(directory: &Path) -> Arc<DetachedHosts> {
        Arc::new(DetachedHosts { file: directory.join(DETACHED), names: Mutex::default() })
    }

    fn set(&self, host: &str, is_detached: bool) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = if is_detached { names.insert(host.to_owned()) } else { names.remove(host) };
        if changed {
            // Commands that list labs miss it; the notices say it too.
            let _ = serde_json::to_vec(&*names).map(|text| fs::write(&self.file, text));
        }
    }
}

/// An attached host.
struct Kept {
    attachment: Attachment,
    is_detached: bool,
    /// Interfaces that were removed, by their numbers and names in this namespace.
    parked: Vec<(usize, String)>,
    retry: Duration,
    next: Instant,
}

impl AttachWatch {
    /// Watches an attached host. `received` has what its ports send.
    pub(crate) fn start(
        attachment: Attachment,
        (events, received): (Sender<AttachEvent>, Receiver<AttachEvent>),
        detached: Arc<DetachedHosts>,
        notice: Notice,
    ) -> AttachWatch {
        let (parked, retry, next) = (Vec::new(), RETRY[0], Instant::now());
        let kept = Kept { attachment, is_detached: false, parked, retry, next };
        let mut work = Work { kept, notice, detached };
        let thread = thread::spawn(move || work.run(&received));
        AttachWatch { events, thread: Some(thread) }
    }

    /// Gives the host other routes or neighbours when it is attached again.
    pub(crate) fn change(&self, configuration: Configuration) {
        // It has ended with its thread otherwise.
        let _ = self.events.send(AttachEvent::Changed(Box::new(configuration)));
    }
}

impl Drop for AttachWatch {
    fn drop(&mut self) {
        let _ = self.events.send(AttachEvent::End);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

struct Work {
    kept: Kept,
    notice: Notice,
    detached: Arc<DetachedHosts>,
}

impl Work {
    fn run(&mut self, received: &Receiver<AttachEvent>) {
        let Work { kept, notice, detached } = self;
        let host = kept.attachment.configuration.node.name.clone();
        loop {
            let event = match kept.parked.is_empty() {
                false => received.recv_timeout(kept.next.saturating_duration_since(Instant::now())),
                true => received.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match event {
                Ok(AttachEvent::Removed(interface)) => kept.park(interface, notice),
                Ok(AttachEvent::Changed(configuration)) => kept.attachment.configuration = *configuration,
                Ok(AttachEvent::End) | Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if !kept.parked.is_empty() && kept.next <= Instant::now() {
                kept.attach(notice);
            }
            detached.set(&host, kept.is_detached);
        }
        detached.set(&host, false);
    }
}

impl Kept {
    /// Makes an interface that was removed again, here, so that its port has one.
    fn park(&mut self, interface: usize, notice: &Notice) {
        let (host, attach) = (&self.attachment.configuration.node.name, self.attachment.namespace.name());
        if !self.is_detached {
            self.is_detached = true;
            self.attachment.namespace.leave();
            notice.send(&format!("host {host} is no longer in {attach}; the lab goes on without it"));
            self.retry = RETRY[0];
            self.next = Instant::now() + self.retry;
        }
        let name = parked_name();
        match self.attachment.taps[interface].create(&name) {
            Ok(()) => self.parked.push((interface, name)),
            Err(error) => notice.send(&format!("host {host}: making its interface again: {error}")),
        }
    }

    fn attach(&mut self, notice: &Notice) {
        let host = self.attachment.configuration.node.name.clone();
        let attach = self.attachment.namespace.name();
        // What fails after the interfaces were moved removes them, which comes back as a message.
        let parked = std::mem::take(&mut self.parked);
        match self.attachment.place(&parked) {
            Ok(_) => {
                self.is_detached = false;
                notice.send(&format!("host {host} is in {attach} again"));
            }
            Err(_) => {
                let here = super::names_here();
                self.parked = parked.into_iter().filter(|(_, name)| here.contains(name)).collect();
                self.retry = (self.retry * 2).min(RETRY[1]);
                self.next = Instant::now() + self.retry;
            }
        }
    }
}
