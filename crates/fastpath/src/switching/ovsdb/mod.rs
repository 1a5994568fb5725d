//! Bridges that a database of Open vSwitch describes (Linux): `ovs-vsctl` drives the switches.
//!
//! ```text
//!  ovs-vsctl ═▶ ovsdb-server ═▶ Client ─▶ Configuration ─▶ OvsdbSwitches ─▶ RunningBridge, RunningBridge, …
//!                            ◀═════════════ RowUpdate ◀── status.rs ◀──────┘
//! ```
//!
//! One thread reads the database, makes the bridges what it describes, and writes back what they
//! are. Frames move on threads of the bridges, so they go on while the database is away.
//!
//! Read first: `apply.rs`.

mod apply;
mod bridge;
mod bridging;
mod numbers;
mod queues;
mod status;

use super::server::ServedSummary;
use bridge::RunningBridge;
use fastpath_engine::Notice;
use fastpath_openflow::agent::{TlsFiles, connect_tls};
use fastpath_ovsdb::{Client, ClientEvent, Configuration, Event, Secure, Uuid, describe, differences};
pub use fastpath_ovsdb::{ParseRemoteError, Remote};
use fastpath_switch::Switch;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Interval between reads of the link states.
const LINKS_EVERY: Duration = Duration::from_millis(200);
/// Interval between attempts to open what could not be opened.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// The settings of [`OvsdbSwitches`].
#[derive(Clone, Debug)]
pub struct OvsdbOptions {
    /// The database server.
    pub remote: Remote,
    /// The directory in which each bridge listens for `ovs-ofctl`, at `BRIDGE.mgmt` and
    /// `BRIDGE.snoop`. `None`: that of the server's socket, if it has one.
    pub run_dir: Option<PathBuf>,
    /// Keys and certificates for a server with TLS.
    pub tls: Option<TlsFiles>,
    /// Most packet-ins per second of a bridge; 0 for no limit.
    pub packet_in_rate: u32,
    /// Receives notices of events.
    pub notice: Notice,
}

/// The bridges of a database. Dropping it ends them.
pub struct OvsdbSwitches {
    client: Client,
    options: OvsdbOptions,
    /// What each bridge begins with.
    switch: Switch,
    /// What is to be in force.
    wanted: Option<Configuration>,
    /// By name.
    bridges: BTreeMap<String, RunningBridge>,
    /// Why rows of the tables Bridge and Interface are not in force.
    errors: BTreeMap<Uuid, String>,
    /// The last notice of each row that is not in force.
    refused: BTreeMap<Uuid, String>,
    /// The number of the next pair of patch ports.
    next_pair: u64,
    /// Bridges that have ended.
    ended: Vec<(String, ServedSummary)>,
    /// Notices that are not repeated.
    said: BTreeSet<String>,
    /// The last notice of a lost connection.
    lost: Option<String>,
    /// Nothing was read since the database was reached.
    is_new: bool,
    retry_at: Instant,
    links_at: Instant,
    statistics_at: Instant,
    write_at: Instant,
}

/// Begins sessions with these keys and certificates. They are read each time, because they may be
/// renewed.
fn secure(files: TlsFiles) -> Secure {
    Secure::new(move |socket, host| Ok(Box::new(connect_tls(&files, socket, host)?)))
}

impl OvsdbSwitches {
    /// Connects to a database. Each of its bridges begins as a copy of `switch`.
    pub fn new(switch: Switch, options: OvsdbOptions) -> OvsdbSwitches {
        let now = Instant::now();
        OvsdbSwitches {
            client: Client::new(options.remote.clone(), options.tls.clone().map(secure)),
            options,
            switch,
            wanted: None,
            bridges: BTreeMap::new(),
            errors: BTreeMap::new(),
            refused: BTreeMap::new(),
            next_pair: 0,
            ended: Vec::new(),
            said: BTreeSet::new(),
            lost: None,
            is_new: false,
            retry_at: now,
            links_at: now,
            statistics_at: now,
            write_at: now,
        }
    }

    /// Does what is to be done, and waits at most `wait` for the database.
    pub fn turn(&mut self, wait: Duration) {
        for event in self.client.turn(wait) {
            self.handle(event);
        }
        let now = Instant::now();
        if now >= self.retry_at {
            self.retry_at = now + RETRY_EVERY;
            let has_failed = |bridge: &RunningBridge| {
                bridge.ports.values().any(|port| bridge.control.has_failed(port.number))
            };
            if !self.errors.is_empty() || self.bridges.values().any(has_failed) {
                self.apply();
            }
        }
        if now >= self.links_at {
            self.links_at = now + LINKS_EVERY;
            self.bridges.values().for_each(RunningBridge::watch_links);
        }
        if now >= self.write_at {
            self.write(now);
        }
    }

    /// Whether a thread of a bridge has ended by a defect.
    pub fn has_failed(&self) -> bool {
        self.bridges.values().any(RunningBridge::has_failed)
    }

    /// Ends all bridges. Returns where all packets went, by the name of the bridge, with those of
    /// bridges that ended before.
    pub fn stop(mut self) -> Vec<(String, ServedSummary)> {
        let running = std::mem::take(&mut self.bridges);
        self.ended.extend(running.into_iter().map(|(name, bridge)| (name, bridge.stop())));
        self.ended
    }

    fn handle(&mut self, event: ClientEvent) {
        match event {
            ClientEvent::Connected => self.is_new = true,
            ClientEvent::Disconnected { why, .. } => {
                let text = format!("{why}; connecting again");
                if self.lost.replace(text.clone()).as_ref() != Some(&text) {
                    self.say(text);
                }
            }
            ClientEvent::Session(Event::Lock) if !self.client.has_lock() => {
                let held = "another program (ovs-vswitchd?) drives the switches of this database: waiting for it to end";
                self.say(held.to_owned());
            }
            ClientEvent::Session(Event::Lock | Event::Changed) => self.read(),
            ClientEvent::Session(Event::Transacted(Ok(()))) => {}
            ClientEvent::Session(Event::Transacted(Err(error))) => {
                self.say(error.to_string());
                self.write_at = Instant::now() + RETRY_EVERY;
            }
        }
    }

    /// Reads what the database describes, and makes it so.
    fn read(&mut self) {
        let Some(replica) = self.client.replica().filter(|_| self.client.has_lock()) else { return };
        let wanted = describe(replica);
        if std::mem::take(&mut self.is_new) {
            self.lost = None;
            self.say(format!("connected to {}", self.options.remote));
        }
        if wanted != self.wanted {
            self.wanted = wanted;
            self.apply();
            // What is written now is what `ovs-vsctl` waits for.
            self.write_at = Instant::now();
        }
    }

    /// Writes what the bridges are where the database has something else.
    fn write(&mut self, now: Instant) {
        let Some(wanted) = &self.wanted else { return };
        let Some(replica) = self.client.replica().filter(|_| self.client.has_lock()) else { return };
        if self.client.is_transacting() {
            return;
        }
        let mut updates = status::updates(wanted, &self.bridges, &self.errors);
        if now >= self.statistics_at {
            self.statistics_at = now + wanted.statistics_every;
            updates.extend(status::statistics(wanted, &self.bridges));
        }
        let updates = differences(replica, updates);
        if !updates.is_empty() {
            self.client.transact(&updates);
        }
    }

    /// The directory in which bridges listen.
    fn run_dir(&self) -> Option<PathBuf> {
        let of_server = match &self.options.remote {
            Remote::Unix(path) => path.parent().map(PathBuf::from),
            Remote::Tcp { .. } | Remote::Ssl { .. } => None,
        };
        self.options.run_dir.clone().or(of_server)
    }

    fn say(&self, text: String) {
        self.options.notice.send(&text);
    }
}
