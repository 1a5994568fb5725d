//! A kernel path: links and switches that hold no packet, in the kernel. Between interfaces of one
//! network namespace, whose other ends are in the hosts:
//!
//! ```text
//!  host a            the namespace of the path                     host b
//!  eth0 ═ veth ═ 1 ─ program: pipe ─ switch ─ pipe ─▶ redirect ─▶ 2 ═ veth ═ eth0
//!                        │ to user space                 ▲
//!                        └─▶ TAP of the engine ──────────┘
//! ```
//!
//! A link can move to user space while frames flow: its interfaces then hand their frames to the
//! TAPs of the engine. What is under way in the kernel arrives there first.

use crate::layout::{
    PipeCounts, PortRole, SwitchCounts, changed_law, law_value, learned, outcome, port, record,
};
use crate::maps::{AGEING_NS, LEARNED_MAX, Log, MapSizes, Maps};
use crate::program;
use fastpath_link::instant::InstantSpec;
use fastpath_sys::bpf::{LoadError, LoadedProgram, RingBuffer, TestPacket, TestRun};
use fastpath_units::Rng;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};

/// Bytes of the ring buffer of the per-packet log: about 55,000 records.
const LOG_SIZE: u32 = 16 << 20;

/// Where frames from an interface go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Towards {
    /// The other end of a link: the interface with this index.
    Wire(u32),
    /// This switch.
    Switch(u32),
}

/// An interface of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathPort {
    /// Its index.
    pub interface: u32,
    /// Where its frames go.
    pub towards: Towards,
    /// The pipe that frames from it enter; `None`: they come from another switch of the path, which
    /// has passed them through it.
    pub pipe_in: Option<u32>,
    /// The pipe that leads to it.
    pub pipe_out: u32,
    /// Whether the other end of the veth pair is in another network namespace.
    pub is_far: bool,
    /// The address of the other end, if it is that of a station. Frames to another address go there
    /// too, by way of the kernel's queue of arriving packets.
    pub address: Option<[u8; 6]>,
    /// Whether the spanning tree blocks it.
    pub is_blocked: bool,
    /// The index of the TAP through which user space reaches it; `None`: it has none.
    pub tap: Option<u32>,
}

/// A path.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PathSpec {
    /// Its interfaces.
    pub ports: Vec<PathPort>,
    /// The pipes, by their numbers, with their generators.
    pub pipes: BTreeMap<u32, (InstantSpec, Rng)>,
    /// The number of switches.
    pub switches: u32,
    /// Whether each packet is recorded.
    pub has_log: bool,
    /// Whether pipes have laws, or may get one.
    pub has_laws: bool,
}

impl PathSpec {
    /// Returns the indices of the interfaces on which its program runs: those of the ports, and
    /// their TAPs.
    pub fn interfaces(&self) -> impl Iterator<Item = u32> + '_ {
        let taps = self.ports.iter().filter_map(|port| port.tap);
        self.ports.iter().map(|port| port.interface).chain(taps)
    }
}

/// Why a path is not in the kernel.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// The kernel refused the program: a defect of this program, unless it is for lack of
    /// privilege.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The kernel refused a map or an attachment.
    #[error("{what}: {source}")]
    System {
        /// What was asked for.
        what: &'static str,
        /// The reason.
        source: io::Error,
    },
}

impl PathError {
    /// Whether this process may not have it, whatever the path.
    pub fn is_privilege(&self) -> bool {
        match self {
            PathError::Load(load) => load.is_refusal(),
            PathError::System { source, .. } => source.kind() == io::ErrorKind::PermissionDenied,
        }
    }
}

fn system(what: &'static str) -> impl Fn(io::Error) -> PathError {
    move |source| PathError::System { what, source }
}

/// A path in the kernel. It ends with this value, or with the process, once it is attached nowhere.
#[derive(Debug)]
pub struct KernelPath {
    maps: Maps,
    program: LoadedProgram,
    ports: Vec<PathPort>,
    /// By interface: its role, and whether its other end is down.
    states: Mutex<BTreeMap<u32, (PortRole, bool)>>,
    /// What the pipes are now.
    pipes: Mutex<BTreeMap<u32, InstantSpec>>,
}

/// A record of the per-packet log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathRecord<'r> {
    /// When it was written, in nanoseconds of `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// The number of the frame among those that entered, from 1.
    pub entered: u64,
    /// The number of a copy among the packets that were made, from 1; `None`: it is not a copy.
    pub made: Option<u64>,
    /// Where.
    pub location: PathLocation,
    /// What happened.
    pub fate: PathFate,
    /// The length of the frame.
    pub len: u32,
    /// The tag that is not in the bytes: its type, then its value.
    pub tag: Option<u32>,
    /// The first bytes.
    pub bytes: &'r [u8],
}

/// A place in a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathLocation {
    /// The pipe with this number.
    Pipe(u32),
    /// The switch with this number.
    Switch(u32),
}

/// What happened to a frame in a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathFate {
    /// The pipe delivered it.
    Delivered {
        /// Marked ECN CE.
        is_marked: bool,
        /// With a flipped bit.
        is_corrupted: bool,
        /// With a copy.
        is_duplicated: bool,
    },
    /// The law lost it, at the entrance or at the exit of the pipe.
    Lost {
        /// At the exit.
        at_exit: bool,
    },
    /// The pipe is down.
    Down,
    /// The switch filtered it.
    Filtered,
    /// The switch could not read it.
    Malformed,
}

impl PathFate {
    fn of(bits: i32) -> PathFate {
        let has = |bit: i32| bits & bit != 0;
        match () {
            () if has(outcome::MALFORMED) => PathFate::Malformed,
            () if has(outcome::FILTERED) => PathFate::Filtered,
            () if has(outcome::DOWN) => PathFate::Down,
            () if has(outcome::LOST) => PathFate::Lost { at_exit: has(outcome::AT_EXIT) },
            () => PathFate::Delivered {
                is_marked: has(outcome::MARKED),
                is_corrupted: has(outcome::CORRUPTED),
                is_duplicated: has(outcome::DUPLICATED),
            },
        }
    }
}

impl KernelPath {
    /// Loads the program of a path and fills its maps. It runs on the interfaces to which the
    /// caller attaches it ([`PathSpec::interfaces`]).
    pub fn load(spec: &PathSpec) -> Result<KernelPath, PathError> {
        let most = |numbers: &mut dyn Iterator<Item = u32>| numbers.max().map_or(0, |most| most + 1);
        let taps = spec.ports.iter().filter_map(|port| port.tap);
        let members = Members::of(&spec.ports);
        let sizes = MapSizes {
            pipes: most(&mut spec.pipes.keys().copied()),
            nodes: spec.switches,
            ports: most(&mut spec.ports.iter().map(|port| port.interface).chain(taps)),
            members: members.all.len() as u32,
            log: spec.has_log.then_some(LOG_SIZE),
            has_laws: spec.has_laws,
        };
        let maps = Maps::create(&sizes).map_err(system("making BPF maps"))?;
        let fill = || -> io::Result<()> {
            for (place, member) in (0u32..).zip(&members.all) {
                maps.members.update(&place.to_ne_bytes(), &member.to_ne_bytes())?;
            }
            for port in &spec.ports {
                maps.ports.update(&port.interface.to_ne_bytes(), &value_of(port, &members, role_of(port)))?;
                if let Some(tap) = port.tap {
                    maps.ports.update(&tap.to_ne_bytes(), &tap_value(port))?;
                }
            }
            for (pipe, (law, rng)) in &spec.pipes {
                // A program without laws does not look at them.
                maps.laws.update(&pipe.to_ne_bytes(), &law_value(law, rng))?;
            }
            Ok(())
        };
        fill().map_err(system("filling BPF maps"))?;
        let program = program::load(&maps)?;
        let pipes = spec.pipes.iter().map(|(pipe, (law, _))| (*pipe, law.clone())).collect();
        let states = spec.ports.iter().map(|port| (port.interface, (role_of(port), false)));
        Ok(KernelPath {
            maps,
            program,
            ports: spec.ports.clone(),
            states: Mutex::new(states.collect()),
            pipes: Mutex::new(pipes),
        })
    }

    /// Returns what was counted of a pipe.
    pub fn counts(&self, pipe: u32) -> PipeCounts {
        let values = self.maps.counters.lookup(&pipe.to_ne_bytes()).ok().flatten();
        PipeCounts::of(&values.unwrap_or_default())
    }

    /// Returns what was counted in a switch.
    pub fn switch_counts(&self, switch: u32) -> SwitchCounts {
        let values = self.maps.nodes.lookup(&switch.to_ne_bytes()).ok().flatten();
        SwitchCounts::of(&values.unwrap_or_default())
    }

    /// Returns whether pipes can have laws.
    pub fn has_laws(&self) -> bool {
        self.maps.has_laws
    }

    /// Gives a pipe another law. Its generator goes on.
    pub fn change(&self, pipe: u32, to: &InstantSpec) -> io::Result<()> {
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(from) = pipes.get_mut(&pipe).filter(|from| *from != to) else { return Ok(()) };
        let key = pipe.to_ne_bytes();
        let current = self.maps.laws.lookup(&key)?.unwrap_or_default();
        self.maps.laws.update(&key, &changed_law(&current, from, to))?;
        *from = to.clone();
        Ok(())
    }

    /// Moves interfaces to user space: from now on their frames go to their TAPs.
    pub fn move_to_user(&self, interfaces: impl Iterator<Item = u32>) -> io::Result<()> {
        for interface in interfaces {
            self.set_state(interface, |port, (role, _)| {
                if port.tap.is_some() {
                    *role = PortRole::User;
                }
            })?;
        }
        Ok(())
    }

    /// Notes whether the other end of an interface is down. Frames to it are counted as lost there.
    pub fn set_down(&self, interface: u32, is_down: bool) -> io::Result<()> {
        self.set_state(interface, |_, (_, state)| *state = is_down)
    }

    /// Changes the state of an interface, one change after the other.
    fn set_state(
        &self,
        interface: u32,
        change: impl FnOnce(&PathPort, &mut (PortRole, bool)),
    ) -> io::Result<()> {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(port) = self.ports.iter().find(|port| port.interface == interface) else { return Ok(()) };
        let Some(state) = states.get_mut(&interface) else { return Ok(()) };
        change(port, state);
        let (role, is_down) = *state;
        let mut value = value_of(port, &Members::of(&self.ports), role);
        put32(&mut value, port::IS_DOWN, u32::from(is_down));
        self.maps.ports.update(&interface.to_ne_bytes(), &value)
    }

    /// Removes the addresses that have aged from the switches whose tables are full, as the
    /// engine's switches do. `now_ns` is the time of `CLOCK_MONOTONIC`.
    pub fn age(&self, now_ns: u64) -> io::Result<()> {
        let mut counts = BTreeMap::new();
        let full = |switch: u32| -> io::Result<bool> {
            let value = self.maps.learned_count.lookup(&switch.to_ne_bytes())?.unwrap_or_default();
            Ok(crate::layout::get(&value, 0) >= LEARNED_MAX as u64)
        };
        let switches: std::collections::BTreeSet<u32> = self.ports.iter().filter_map(switch_of).collect();
        for switch in switches {
            if full(switch)? {
                counts.insert(switch, 0u64);
            }
        }
        if counts.is_empty() {
            return Ok(());
        }
        for key in self.maps.learned.keys()? {
            let switch = u32::from_ne_bytes([key[0], key[1], key[2], key[3]]);
            let Some(count) = counts.get_mut(&switch) else { continue };
            let Some(value) = self.maps.learned.lookup(&key)? else { continue };
            let at = crate::layout::get(&value, learned::TIME);
            if now_ns.saturating_sub(at) > AGEING_NS {
                self.maps.learned.remove(&key)?;
            } else {
                *count += 1;
            }
        }
        for (switch, count) in counts {
            self.maps.learned_count.update(&switch.to_ne_bytes(), &count.to_ne_bytes())?;
        }
        Ok(())
    }

    /// Runs the program on a packet that seems to come from an interface, `repeat` times. What it
    /// redirects goes nowhere.
    pub fn test_run(&self, packet: TestPacket<'_>, repeat: u32) -> io::Result<TestRun> {
        self.program.test_run(packet, repeat)
    }

    /// Takes the records of the per-packet log out of this value; `None` without a log.
    pub fn take_log(&mut self) -> io::Result<Option<PathLog>> {
        let Some(log) = self.maps.log.take() else { return Ok(None) };
        let Log { numbers, records } = log;
        Ok(Some(PathLog { ring: RingBuffer::new(records, LOG_SIZE)?, numbers }))
    }
}

impl AsFd for KernelPath {
    /// The program, for attachments by other means.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }
}

/// The records of the per-packet log.
#[derive(Debug)]
pub struct PathLog {
    ring: RingBuffer,
    numbers: fastpath_sys::bpf::Map,
}

impl PathLog {
    /// Passes the records that are there to `take`, in order. Returns their number.
    pub fn read(&mut self, mut take: impl FnMut(PathRecord<'_>)) -> usize {
        self.ring.read(|bytes| take(record_of(bytes)))
    }

    /// Returns the number of records that had no room so far.
    pub fn missing(&self) -> u64 {
        let value = self.numbers.lookup(&crate::log::MISSING.to_ne_bytes()).ok().flatten();
        crate::layout::get(&value.unwrap_or_default(), 0)
    }
}

impl AsFd for PathLog {
    /// Readable when there are records.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}

fn record_of(bytes: &[u8]) -> PathRecord<'_> {
    let long = |at: i16| crate::layout::get(bytes, at);
    let word = |at: i16| {
        let at = at as usize;
        u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
    };
    let (len, location) = (word(record::LEN), word(record::LOCATION));
    let kept = (len as usize).min(record::SNAP as usize);
    PathRecord {
        at_ns: long(record::TIME),
        entered: long(record::ENTERED),
        made: Some(long(record::MADE)).filter(|made| *made > 0),
        location: match location & record::IS_NODE {
            0 => PathLocation::Pipe(location),
            _ => PathLocation::Switch(location & !record::IS_NODE),
        },
        fate: PathFate::of(word(record::OUTCOME) as i32),
        len,
        tag: Some(word(record::TAG)).filter(|tag| *tag > 0),
        bytes: &bytes[record::BYTES as usize..record::BYTES as usize + kept],
    }
}

/// The interfaces to which switches flood.
struct Members {
    all: Vec<u32>,
    /// By switch: the first, and their number.
    ranges: BTreeMap<u32, (u32, u32)>,
}

impl Members {
    fn of(ports: &[PathPort]) -> Members {
        let mut by_switch: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for port in ports.iter().filter(|port| !port.is_blocked) {
            if let Towards::Switch(switch) = port.towards {
                by_switch.entry(switch).or_default().push(port.interface);
            }
        }
        let mut members = Members { all: Vec::new(), ranges: BTreeMap::new() };
        for (switch, ports) in by_switch {
            members.ranges.insert(switch, (members.all.len() as u32, ports.len() as u32));
            members.all.extend(ports);
        }
        members
    }
}

fn switch_of(port: &PathPort) -> Option<u32> {
    match port.towards {
        Towards::Switch(switch) => Some(switch),
        Towards::Wire(_) => None,
    }
}

fn role_of(port: &PathPort) -> PortRole {
    match port.towards {
        Towards::Wire(_) => PortRole::Wire,
        Towards::Switch(_) => PortRole::Switch,
    }
}

fn put32(value: &mut [u8], at: i16, number: u32) {
    value[at as usize..at as usize + 4].copy_from_slice(&number.to_ne_bytes());
}

fn value_of(of: &PathPort, members: &Members, role: PortRole) -> Vec<u8> {
    let mut value = vec![0; port::SIZE as usize];
    let (node, out) = match of.towards {
        Towards::Wire(out) => (0, out),
        Towards::Switch(node) => (node, 0),
    };
    let (first, count) =
        switch_of(of).and_then(|node| members.ranges.get(&node).copied()).unwrap_or_default();
    for (at, number) in [
        (port::ROLE, role as u32),
        (port::ASIDE, of.tap.unwrap_or_default()),
        (port::NODE, node),
        (port::PIPE_IN, of.pipe_in.unwrap_or(port::NO_PIPE)),
        (port::PIPE_OUT, of.pipe_out),
        (port::OUT, out),
        (port::IS_PEER, u32::from(of.is_far)),
        (port::IS_BLOCKED, u32::from(of.is_blocked)),
        (port::FIRST, first),
        (port::COUNT, count),
    ] {
        put32(&mut value, at, number);
    }
    let at = port::ADDRESS as usize;
    value[at..at + 6].copy_from_slice(&of.address.unwrap_or_default());
    value
}

/// The value of the TAP of a port.
fn tap_value(of: &PathPort) -> Vec<u8> {
    let mut value = vec![0; port::SIZE as usize];
    put32(&mut value, port::ROLE, PortRole::Tap as u32);
    put32(&mut value, port::OUT, of.interface);
    value
}
