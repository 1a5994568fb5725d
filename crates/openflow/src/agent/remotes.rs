//! Orders to a running agent: ports that come and go, and other controllers.
//!
//! Controllers that stay keep their connections. As in Open vSwitch, the flows of a switch go when
//! it gets its first controller or loses its last one, and when it changes its mode without one.

use super::connection::{Connection, Kind, State};
use super::event::Event;
use super::event_loop::{Dialled, EventLoop};
use super::local::Unserved;
use super::order::{Dial, DialledState, Order, Remotes};
use super::standalone;
use super::tls::Tls;
use super::{FailMode, Listen, TlsFiles};
use fastpath_switch::Port;
use fastpath_switch::port::LinkState;
use std::sync::PoisonError;
use std::time::Instant;

impl EventLoop {
    /// Does what has been ordered.
    pub(super) fn carry_out_orders(&mut self) {
        while let Ok(order) = self.orders.try_recv() {
            match order {
                Order::AddPort(number, info) => {
                    self.switch.ports.insert(number, info);
                    self.switch.async_messages.push(Event::PortAdded(number));
                }
                Order::RemovePort(number) => {
                    let gone = Port { link: LinkState::Down, ..Port::up() };
                    let description = self.switch.describe(number, &gone);
                    self.switch.ports.remove(&number);
                    self.switch.async_messages.push(Event::PortRemoved(Box::new(description)));
                }
                Order::Follow(remotes) => self.follow(*remotes),
                Order::ServeAt(path, service) => {
                    self.unserved.push(Unserved { path, service, why: String::new() });
                    self.serve_at_paths();
                }
            }
        }
    }

    fn follow(&mut self, remotes: Remotes) {
        let Remotes { datapath_id, versions, dial, listen, tls, fail_mode } = remotes;
        if self.switch.datapath_id != datapath_id {
            self.switch.datapath_id = datapath_id;
            // Controllers learn it from the first reply only.
            self.hang_up("the switch has another datapath id", |_| true);
        }
        if self.options.versions != versions {
            self.options.versions = versions;
            let is_other = |one: &Connection| !versions.contains(one.codec.version());
            self.hang_up("the switch has other versions of OpenFlow", is_other);
        }
        let tls = self.load_tls(tls);
        let had_controllers = !self.targets.is_empty();
        let is_dropped = |one: &Dialled| dial.iter().all(|wanted| wanted.target != one.dial.target);
        let dropped: Vec<bool> = self.targets.iter().map(is_dropped).collect();
        let is_dropped = |one: &Connection| matches!(one.kind, Kind::Dialled(index) if dropped[index]);
        self.hang_up("not a controller of the switch any more", is_dropped);
        self.replace_targets(dial);
        let deaf = self.listen_to(&listen);
        let has_controllers = !self.targets.is_empty();
        let is_other_mode = self.options.fail_mode != fail_mode && !has_controllers;
        self.options.fail_mode = fail_mode;
        if had_controllers != has_controllers || is_other_mode {
            let removed = standalone::restart(&self.switch.control);
            self.switch.note_removed(removed);
            self.is_standalone = false;
            if !has_controllers && fail_mode == FailMode::Standalone {
                standalone::by_default(&self.switch.control);
            }
        } else if self.is_standalone && fail_mode == FailMode::Secure {
            standalone::end(&self.switch.control);
            self.is_standalone = false;
        }
        let mut shared = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (shared.deaf, shared.tls) = (deaf, tls);
    }

    /// Loads keys and certificates if they are others than before. Returns why that failed.
    fn load_tls(&mut self, files: Option<TlsFiles>) -> Option<String> {
        if files == self.options.tls {
            return self.state.lock().unwrap_or_else(PoisonError::into_inner).tls.clone();
        }
        let loaded = files.as_ref().map(Tls::load).transpose();
        self.options.tls = files;
        match loaded {
            Ok(loaded) => {
                self.tls = loaded;
                None
            }
            Err(error) => {
                self.tls = None;
                Some(error.to_string())
            }
        }
    }

    /// Dials these controllers from now on. The connections to others have been closed.
    fn replace_targets(&mut self, dial: Vec<Dial>) {
        let now = Instant::now();
        let mut before: Vec<Option<Dialled>> =
            std::mem::take(&mut self.targets).into_iter().map(Some).collect();
        let mut places = vec![0; before.len()];
        for wanted in dial {
            let is_same =
                |one: &Option<Dialled>| one.as_ref().is_some_and(|one| one.dial.target == wanted.target);
            let known = before.iter().position(is_same);
            let dialled = known.and_then(|known| {
                places[known] = self.targets.len();
                before[known].take()
            });
            let dialled = match dialled {
                Some(mut dialled) => {
                    dialled.dial = wanted;
                    dialled
                }
                None => Dialled::new(wanted, now),
            };
            self.targets.push(dialled);
        }
        for connection in self.connections.values_mut() {
            if let Kind::Dialled(index) = &mut connection.kind {
                *index = places[*index];
            }
        }
    }

    /// Closes connections, and says why.
    fn hang_up(&mut self, why: &str, is_meant: impl Fn(&Connection) -> bool) {
        let tokens = self.connections.iter().filter(|(_, one)| one.kind != Kind::Snoop && is_meant(one));
        for token in tokens.map(|(token, _)| *token).collect::<Vec<_>>() {
            let Some(mut connection) = self.connections.remove(&token) else { continue };
            let _ = connection.send();
            let _ = self.poll.registry().deregister(&mut connection.stream);
            if let Kind::Dialled(index) = connection.kind {
                self.targets[index].state = Err(Instant::now());
            }
            self.options.notice.send(&format!("{}: {why}", connection.peer));
        }
    }

    /// Listens on these addresses, and on no others except those of snoops.
    /// Returns where it cannot, and why.
    fn listen_to(&mut self, wanted: &[Listen]) -> Vec<(Listen, String)> {
        let mut deaf = Vec::new();
        let registry = self.poll.registry();
        self.listeners.retain(|_, listener| {
            let stays = listener.kind == Kind::Snoop || wanted.contains(&listener.listen);
            if !stays {
                let _ = registry.deregister(&mut listener.socket);
            }
            stays
        });
        for listen in wanted {
            let has = self.listeners.values().any(|one| one.listen == *listen && one.kind != Kind::Snoop);
            if !has && let Err(error) = self.listen(*listen, Kind::Answered) {
                self.options.notice.send(&format!("{listen}: {error}"));
                deaf.push((*listen, error.to_string()));
            }
        }
        deaf
    }

    /// Tells the owner of the agent how its controllers are.
    pub(super) fn publish_state(&self) {
        let role = |dialled: &Dialled| {
            let connection = self.connections.get(dialled.state.as_ref().ok()?)?;
            (connection.state == State::Up).then_some(connection.role)
        };
        let one = |dialled: &Dialled| DialledState {
            target: dialled.dial.target.clone(),
            role: role(dialled),
            failure: dialled.failure.clone(),
        };
        let mut shared = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        shared.dialled.clear();
        shared.dialled.extend(self.targets.iter().map(one));
    }
}
