//! Maps: the tables that BPF programs and processes share.

use super::{address, bpf, check, make, name_of};
use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

// linux/bpf.h: commands, flags.
const MAP_CREATE: c_int = 0;
const MAP_LOOKUP_ELEM: c_int = 1;
const MAP_UPDATE_ELEM: c_int = 2;
const MAP_DELETE_ELEM: c_int = 3;
const MAP_GET_NEXT_KEY: c_int = 4;
const BTF_LOAD: c_int = 18;
/// The value has a spin lock, which reads and writes take.
const F_LOCK: u64 = 4;
/// Elements of tries and of large hash tables are allocated when they are added.
const F_NO_PREALLOC: u32 = 1;

/// The kind of a map (`enum bpf_map_type`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapKind {
    /// By key.
    Hash = 1,
    /// By number.
    Array = 2,
    /// By number, with programs.
    Programs = 3,
    /// By number, with a value for each CPU.
    PerCpuArray = 6,
    /// By key; when it is full the entry used longest ago makes room.
    LruHash = 9,
    /// By the longest matching prefix.
    LpmTrie = 11,
    /// By number, with other maps.
    Maps = 12,
    /// By receive queue, with AF_XDP sockets.
    Sockets = 17,
    /// Records from programs to this process.
    RingBuffer = 27,
}

/// What a map is made of.
#[derive(Clone, Copy, Debug)]
pub struct MapSpec<'s> {
    /// Its kind.
    pub kind: MapKind,
    /// Its name in the kernel, at most 15 letters.
    pub name: &'s str,
    /// Bytes of a key.
    pub key: u32,
    /// Bytes of a value.
    pub value: u32,
    /// The most entries; for a ring buffer its bytes, a power of two and whole pages.
    pub entries: u32,
    /// The types of key and value, where the value has a spin lock.
    pub types: Option<(&'s Btf, [u32; 2])>,
    /// For a map of maps: one like those that it will have.
    pub inner: Option<&'s Map>,
}

/// A map. The kernel frees it with its last descriptor and the last program that uses it.
#[derive(Debug)]
pub struct Map {
    fd: OwnedFd,
    key: usize,
    value: usize,
    /// Bytes that a look-up returns: of all CPUs, if each has a value.
    answer: usize,
    has_lock: bool,
}

/// Descriptions of types (BPF Type Format), loaded.
#[derive(Debug)]
pub struct Btf(OwnedFd);

#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
    inner_map_fd: u32,
    numa_node: u32,
    map_name: [u8; 16],
    map_ifindex: u32,
    btf_fd: u32,
    btf_key_type_id: u32,
    btf_value_type_id: u32,
}

#[repr(C)]
struct Element {
    map_fd: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct BtfLoad {
    btf: u64,
    btf_log_buf: u64,
    btf_size: u32,
    btf_log_size: u32,
    btf_log_level: u32,
}

impl Btf {
    /// Loads descriptions of types.
    pub fn load(bytes: &[u8]) -> io::Result<Btf> {
        let mut load = BtfLoad {
            btf: address(bytes),
            btf_log_buf: 0,
            btf_size: bytes.len() as u32,
            btf_log_size: 0,
            btf_log_level: 0,
        };
        // SAFETY: the structure is what the command takes; its pointer is to bytes that live
        // through the call; the answer is a descriptor.
        unsafe { make(BTF_LOAD, &mut load) }.map(Btf)
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl MapSpec<'_> {
    /// The most bytes of a hash table that has its memory from the start.
    const TABLE_MAX: u64 = 1 << 20;

    /// Whether elements get memory when they are added.
    fn grows(&self) -> bool {
        let bytes = u64::from(self.entries) * u64::from(self.key + self.value);
        self.kind == MapKind::LpmTrie || (self.kind == MapKind::Hash && bytes > MapSpec::TABLE_MAX)
    }
}

impl Map {
    /// Creates an empty map. The values of arrays are zero.
    pub fn create(spec: &MapSpec<'_>) -> io::Result<Map> {
        let (btf_fd, [key_type, value_type]) =
            spec.types.map_or((0, [0, 0]), |(btf, types)| (btf.0.as_raw_fd() as u32, types));
        let mut create = MapCreate {
            map_type: spec.kind as u32,
            key_size: spec.key,
            value_size: spec.value,
            max_entries: spec.entries,
            map_flags: if spec.grows() { F_NO_PREALLOC } else { 0 },
            inner_map_fd: spec.inner.map_or(0, |inner| inner.fd.as_raw_fd() as u32),
            numa_node: 0,
            map_name: name_of(spec.name),
            map_ifindex: 0,
            btf_fd,
            btf_key_type_id: key_type,
            btf_value_type_id: value_type,
        };
        // SAFETY: the structure is what the command takes, without pointers; the answer is a
        // descriptor.
        let fd = unsafe { make(MAP_CREATE, &mut create) }?;
        let value = spec.value as usize;
        let answer = match spec.kind {
            MapKind::PerCpuArray => value.next_multiple_of(8) * possible_cpus(),
            _ => value,
        };
        Ok(Map { fd, key: spec.key as usize, value, answer, has_lock: spec.types.is_some() })
    }

    /// Returns the value of a key; with a value for each CPU all of them, each on a multiple of
    /// eight bytes. `None` without an entry.
    pub fn lookup(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let mut value = vec![0; self.answer];
        let done = self.element(MAP_LOOKUP_ELEM, key, value.as_mut_ptr() as u64, self.lock());
        absent(done).map(|done| done.map(|()| value))
    }

    /// Adds or replaces an entry.
    pub fn update(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        assert_eq!(value.len(), self.value, "a value has the bytes of the map");
        self.element(MAP_UPDATE_ELEM, key, address(value), self.lock())
    }

    /// Replaces an entry of which each CPU has a value, by `value` for all of them.
    pub fn update_all_cpus(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        assert_eq!(value.len(), self.value, "a value has the bytes of the map");
        let mut one = value.to_vec();
        one.resize(self.value.next_multiple_of(8), 0);
        let all = one.repeat(self.answer / one.len());
        self.element(MAP_UPDATE_ELEM, key, address(&all[..]), 0)
    }

    /// Gives an entry of a map of maps, programs or sockets.
    pub fn set(&self, key: &[u8], what: BorrowedFd<'_>) -> io::Result<()> {
        assert_eq!(self.value, 4, "a map of descriptors");
        self.element(MAP_UPDATE_ELEM, key, address(&what.as_raw_fd()), 0)
    }

    /// Removes an entry. Returns whether it was there.
    pub fn remove(&self, key: &[u8]) -> io::Result<bool> {
        absent(self.element(MAP_DELETE_ELEM, key, 0, 0)).map(|done| done.is_some())
    }

    /// Returns the keys, in no order. Those that come and go meanwhile may be missing.
    pub fn keys(&self) -> io::Result<Vec<Vec<u8>>> {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        loop {
            let mut next = vec![0u8; self.key];
            let mut ask = Element {
                map_fd: self.fd.as_raw_fd() as u32,
                padding: 0,
                key: keys.last().map_or(0, |last| address(&last[..])),
                value: next.as_mut_ptr() as u64,
                flags: 0,
            };
            // SAFETY: the structure is what the command takes; its pointers are null or to bytes of
            // a key each, which live through the call.
            let done = check(unsafe { bpf(MAP_GET_NEXT_KEY, &mut ask) });
            match absent(done.map(drop))? {
                None => return Ok(keys),
                Some(()) => keys.push(next),
            }
        }
    }

    fn lock(&self) -> u64 {
        if self.has_lock { F_LOCK } else { 0 }
    }

    /// Does something with an entry. `value` is null, or the address of as many bytes as the map
    /// reads or writes.
    fn element(&self, command: c_int, key: &[u8], value: u64, flags: u64) -> io::Result<()> {
        assert_eq!(key.len(), self.key, "a key has the bytes of the map");
        let mut element =
            Element { map_fd: self.fd.as_raw_fd() as u32, padding: 0, key: address(key), value, flags };
        // SAFETY: the structure is what the command takes; its pointers are null or to the bytes of
        // a key and of a value, as `lookup` and `update` ensure, which live through the call.
        check(unsafe { bpf(command, &mut element) })?;
        Ok(())
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Makes a missing entry `None`.
fn absent(done: io::Result<()>) -> io::Result<Option<()>> {
    match done {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        done => done.map(Some),
    }
}

/// The number of CPUs that could be there, for each of which some maps have a value.
fn possible_cpus() -> usize {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    // Ranges in ascending order: 0-3 or 0,2-7.
    let last = text.trim().rsplit(['-', ',']).next().and_then(|last| last.parse::<usize>().ok());
    last.map_or(1, |last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: MapSpec<'_> =
        MapSpec { kind: MapKind::Hash, name: "test", key: 4, value: 8, entries: 2, types: None, inner: None };

    /// Without the privilege there is no map to test.
    fn made(spec: &MapSpec<'_>) -> Option<Map> {
        match Map::create(spec) {
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                println!("SKIPPED maps: bpf(2) is not permitted");
                None
            }
            made => Some(made.unwrap()),
        }
    }

    #[test]
    fn entries_come_and_go_and_a_full_map_refuses() {
        let Some(map) = made(&HASH) else { return };
        assert_eq!(map.lookup(&[1, 0, 0, 0]).unwrap(), None);
        map.update(&[1, 0, 0, 0], &[7; 8]).unwrap();
        map.update(&[2, 0, 0, 0], &[8; 8]).unwrap();
        assert_eq!(map.update(&[3, 0, 0, 0], &[9; 8]).unwrap_err().raw_os_error(), Some(libc::E2BIG));
        let mut keys = map.keys().unwrap();
        keys.sort();
        assert_eq!(keys, [[1, 0, 0, 0], [2, 0, 0, 0]]);
        assert_eq!(map.lookup(&[2, 0, 0, 0]).unwrap(), Some(vec![8; 8]));
        assert!(map.remove(&[2, 0, 0, 0]).unwrap());
        assert!(!map.remove(&[2, 0, 0, 0]).unwrap());
    }

    #[test]
    fn each_cpu_has_its_value() {
        let spec = MapSpec { kind: MapKind::PerCpuArray, value: 4, ..HASH };
        let Some(map) = made(&spec) else { return };
        map.update_all_cpus(&[1, 0, 0, 0], &[5, 0, 0, 0]).unwrap();
        let all = map.lookup(&[1, 0, 0, 0]).unwrap().unwrap();
        assert_eq!(all.len(), 8 * possible_cpus());
        assert!(all.chunks(8).all(|value| value == [5, 0, 0, 0, 0, 0, 0, 0]), "{all:?}");
    }
}
