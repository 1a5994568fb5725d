//! Descriptions of types (BPF Type Format, Documentation/bpf/btf.rst): the kernel wants them for
//! functions that a helper calls back, and for values with a spin lock.

use fastpath_sys::bpf::Btf;
use std::io;

/// Descriptions in the making.
#[derive(Debug)]
pub struct Types {
    types: Vec<u8>,
    strings: Vec<u8>,
    count: u32,
    /// Numbers of what most types are made of.
    int: u32,
    long: u32,
}

const MAGIC: u16 = 0xeb9f;
const HEADER: u32 = 24;
// Kinds of types.
const INT: u32 = 1;
const POINTER: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const FUNCTION: u32 = 12;
const PROTOTYPE: u32 = 13;
/// In place of the number of members of a function: others may call it.
const GLOBAL: u32 = 1;

impl Default for Types {
    fn default() -> Types {
        Types::new()
    }
}

impl Types {
    /// Integers of four and eight bytes only.
    pub fn new() -> Types {
        let mut types = Types { types: Vec::new(), strings: vec![0], count: 0, int: 0, long: 0 };
        types.int = types.integer("int", 4);
        types.long = types.integer("long", 8);
        types
    }

    fn name(&mut self, text: &str) -> u32 {
        let at = self.strings.len() as u32;
        self.strings.extend(text.bytes().chain([0]));
        at
    }

    fn words(&mut self, words: &[u32]) {
        words.iter().for_each(|word| self.types.extend(word.to_ne_bytes()));
    }

    /// Adds a type: its name, kind with number of members, size or type, and what follows.
    fn add(&mut self, name: &str, kind: u32, members: u32, size: u32, rest: &[u32]) -> u32 {
        let name = if name.is_empty() { 0 } else { self.name(name) };
        self.words(&[name, kind << 24 | members, size]);
        self.words(rest);
        self.count += 1;
        self.count
    }

    fn integer(&mut self, name: &str, bytes: u32) -> u32 {
        self.add(name, INT, 0, bytes, &[bytes * 8])
    }

    /// The number of the integer of four bytes, the key of arrays.
    pub fn int(&self) -> u32 {
        self.int
    }

    /// Adds the type of a value of `bytes`, a multiple of eight, that begins with a spin lock.
    pub fn with_lock(&mut self, bytes: u32) -> u32 {
        let val = self.name("val");
        let lock = self.add("bpf_spin_lock", STRUCT, 1, 4, &[val, self.int, 0]);
        let rest = self.add("", ARRAY, 0, 0, &[self.long, self.int, bytes / 8 - 1]);
        let [lock_name, rest_name] = ["lock", "rest"].map(|text| self.name(text));
        self.add("locked", STRUCT, 2, bytes, &[lock_name, lock, 0, rest_name, rest, 64])
    }

    /// Adds the type of a function with this many arguments of eight bytes that returns an integer.
    pub fn function(&mut self, name: &str, arguments: u32) -> u32 {
        let mut parameters = Vec::new();
        for _ in 0..arguments {
            parameters.extend([self.name("a"), self.long]);
        }
        let prototype = self.add("", PROTOTYPE, arguments, self.int, &parameters);
        self.add(name, FUNCTION, 0, prototype, &[])
    }

    /// Adds the type of a function that the kernel checks once, whoever calls it: of a packet, a
    /// number, and memory of `bytes`, whose address it checks to be there. It returns an integer.
    pub fn shared_function(&mut self, name: &str, bytes: u32) -> u32 {
        // The kernel knows the type of packets by its name.
        let packet = self.add("__sk_buff", STRUCT, 0, 0, &[]);
        let packet = self.add("", POINTER, 0, packet, &[]);
        let rest = self.add("", ARRAY, 0, 0, &[self.long, self.int, bytes / 8]);
        let member = self.name("rest");
        let memory = self.add("memory", STRUCT, 1, bytes, &[member, rest, 0]);
        let memory = self.add("", POINTER, 0, memory, &[]);
        let names = ["packet", "number", "memory"].map(|name| self.name(name));
        let parameters = [names[0], packet, names[1], self.int, names[2], memory];
        let prototype = self.add("", PROTOTYPE, 3, self.int, &parameters);
        self.add(name, FUNCTION, GLOBAL, prototype, &[])
    }

    /// Loads the descriptions.
    pub fn load(&self) -> io::Result<Btf> {
        let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
        let mut bytes = Vec::new();
        bytes.extend(MAGIC.to_ne_bytes());
        bytes.extend([1, 0]);
        for word in [HEADER, 0, types, types, strings] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(&self.types);
        bytes.extend(&self.strings);
        Btf::load(&bytes)
    }
}
