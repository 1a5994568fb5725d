//! The work on a packet, and its tag: what all schedulers handle.

use crate::keys::read_word;

/// How the packets of one flow may overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tag {
    /// Without restriction.
    #[default]
    Parallel,
    /// Processed in parallel, leaving in the order of arrival.
    Ordered,
    /// One at a time, in order.
    Atomic,
}

read_word!(Tag as "a tag": ["parallel" => Tag::Parallel, "ordered" => Tag::Ordered, "atomic" => Tag::Atomic]);

/// The work on one packet, as a scheduler sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkItem {
    /// The packet's number.
    pub packet: u32,
    /// Its flow: the tag's value.
    pub flow: u32,
    /// Its receive queue, or its flow if no NIC has chosen one.
    pub queue: u32,
    /// Its priority class, 0 first.
    pub priority: u8,
    /// Its group; a core takes only some groups.
    pub group: u8,
    /// How it may overlap with other packets of its flow.
    pub tag: Tag,
}
