//! Watches the interfaces of attached hosts, and attaches a host again when its namespace is back.

use super::{Attachment, Removed, parked_name};
use crate::state::lab_files::DETACHED;
use fastpath_engine::Notice;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Time between two attempts to attach a host again: at first, and at most.
const RETRY: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(5)];

/// The thread that attaches hosts again. It ends on drop.
#[derive(Debug)]
pub(crate) struct AttachWatch {
    stop: Option<Sender<Removed>>,
    thread: Option<JoinHandle<()>>,
}

/// Ends the thread. No host has this number.
const STOP: Removed = Removed { host: usize::MAX, interface: 0 };

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
    /// Watches attached hosts, in the order of their numbers. `removed` receives what their ports
    /// report to `sender`.
    pub(crate) fn start(
        attachments: Vec<Attachment>,
        (sender, removed): (Sender<Removed>, Receiver<Removed>),
        directory: &Path,
        notice: Notice,
    ) -> AttachWatch {
        let kept = |attachment| Kept {
            attachment,
            is_detached: false,
            parked: Vec::new(),
            retry: RETRY[0],
            next: Instant::now(),
        };
        let hosts = attachments.into_iter().map(kept).collect();
        let mut work = Work { hosts, notice, file: directory.join(DETACHED) };
        let thread = thread::spawn(move || work.run(&removed));
        AttachWatch { stop: Some(sender), thread: Some(thread) }
    }
}

impl Drop for AttachWatch {
    fn drop(&mut self) {
        let _ = self.stop.take().map(|stop| stop.send(STOP));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

struct Work {
    hosts: Vec<Kept>,
    notice: Notice,
    file: PathBuf,
}

impl Work {
    fn run(&mut self, removed: &Receiver<Removed>) {
        loop {
            let due = self.hosts.iter().filter(|kept| !kept.parked.is_empty()).map(|kept| kept.next).min();
            let message = match due {
                Some(due) => removed.recv_timeout(due.saturating_duration_since(Instant::now())),
                None => removed.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match message {
                Ok(Removed { host, interface }) => match self.hosts.get_mut(host) {
                    Some(kept) => kept.park(interface, &self.notice),
                    None => return,
                },
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let now = Instant::now();
            let due = |kept: &&mut Kept| !kept.parked.is_empty() && kept.next <= now;
            self.hosts.iter_mut().filter(due).for_each(|kept| kept.attach(&self.notice));
            self.write();
        }
    }

    /// Writes which hosts are detached.
    fn write(&self) {
        let detached = self.hosts.iter().filter(|kept| kept.is_detached);
        let names: Vec<&str> = detached.map(|kept| kept.attachment.node.name.as_str()).collect();
        // Commands that list labs miss it; the notices say it too.
        let _ = serde_json::to_vec(&names).map(|text| fs::write(&self.file, text));
    }
}

impl Kept {
    /// Makes an interface that was removed again, here, so that its port has one.
    fn park(&mut self, interface: usize, notice: &Notice) {
        let (host, attach) = (&self.attachment.node.name, self.attachment.namespace.name());
        if !self.is_detached {
            self.is_detached = true;
            self.attachment.namespace.set(None);
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
        let (host, attach) = (self.attachment.node.name.clone(), self.attachment.namespace.name());
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
