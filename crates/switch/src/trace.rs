//! The path of one packet through a switch, step by step, and the bits of the packet on which the
//! path depends. [`crate::interp::trace`] makes it.
//!
//! ```text
//!   lookup ─ actions ─┬─ resubmit ─ lookup ─ actions      a depth more
//!                     ├─ group ─ bucket ─ actions
//!                     └─ ct, NORMAL: what they decided
//! ```

use crate::action::{Action, Extension};
use crate::extension::{Bits, Bundle, HashFields, Multipath, Source, Zone};
use crate::field::{FIELDS, Field};
use crate::flow::{Instructions, Rank};
use crate::key::{ConnectionFields, Key};
use crate::matching::FieldMatch;
use crate::meter::MeterResult;
use crate::normal::ForwardingDecision;
use crate::outcome::PacketOutcome;
use crate::table::Table;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Fields of which a hash of a flow is made, where the packet has them.
const FLOW: [Field; 11] = [
    Field::IpProto,
    Field::Ipv4Src,
    Field::Ipv4Dst,
    Field::Ipv6Src,
    Field::Ipv6Dst,
    Field::TcpSrc,
    Field::TcpDst,
    Field::UdpSrc,
    Field::UdpDst,
    Field::SctpSrc,
    Field::SctpDst,
];
const LINK: [Field; 3] = [Field::EthDst, Field::EthSrc, Field::EthType];

/// The path of a packet.
#[derive(Clone, Debug)]
pub struct Trace {
    /// What happened, in order.
    pub steps: Vec<TraceStep>,
    /// The fields of the packet as it arrived.
    pub arrived: Key,
    /// The fields of the packet at the end of its tables; copies may have left with others.
    pub ended: Key,
    /// The bits of the packet on which the path depends: every packet that is equal in them takes
    /// it. State of the switch (addresses, connections, meters) may change it.
    pub looked_at: Vec<FieldMatch>,
    /// Where the packet and its copies went.
    pub outcomes: Vec<PacketOutcome>,
}

/// A step of the path.
#[derive(Clone, Debug)]
pub struct TraceStep {
    /// Resubmits, clones and groups inside each other.
    pub depth: usize,
    /// What happened.
    pub event: TraceEvent,
}

/// What happened to a packet.
#[derive(Clone, Debug)]
pub enum TraceEvent {
    /// It was looked up in a table.
    Lookup(Box<Lookup>),
    /// An action was executed.
    Action(Action),
    /// The actions that follow are those of the action set.
    ActionSet,
    /// The actions that follow are those of a bucket of a group, on a copy.
    Bucket {
        /// The group.
        group: u32,
        /// The bucket, from 0.
        bucket: usize,
    },
    /// A meter judged it.
    Metered {
        /// The meter.
        id: u32,
        /// What it decided.
        result: MeterResult,
    },
    /// Connection tracking said this of it.
    Tracked(ConnectionFields),
    /// OFPP_NORMAL decided this.
    Located(ForwardingDecision),
}

/// The result of one table lookup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lookup {
    /// The table.
    pub table_id: u8,
    /// The flow that matched, if any.
    pub rank: Option<Rank>,
    /// Its instructions.
    pub instructions: Arc<Instructions>,
    /// What connection tracking has said of the packet.
    pub connection: ConnectionFields,
    /// The fields of the packet.
    pub key: Key,
}

/// Collects the steps of a packet, and the bits that were looked at.
#[derive(Debug)]
pub(crate) struct Tracer {
    pub(crate) steps: Vec<TraceStep>,
    arrived: Key,
    /// The fields when a step was last taken.
    pub(crate) now: Key,
    /// By field: bits that were looked at, and bits that actions wrote before.
    looked_at: BTreeMap<Field, u128>,
    written: BTreeMap<Field, u128>,
}

impl Tracer {
    pub(crate) fn new(arrived: Key) -> Tracer {
        let (looked_at, written) = (BTreeMap::new(), BTreeMap::new());
        Tracer { steps: Vec::new(), arrived, now: arrived, looked_at, written }
    }

    pub(crate) fn note(&mut self, depth: usize, event: TraceEvent) {
        match &event {
            TraceEvent::Bucket { .. } | TraceEvent::ActionSet | TraceEvent::Metered { .. } => {}
            TraceEvent::Lookup(_) | TraceEvent::Tracked(_) => {}
            TraceEvent::Action(action) => self.read_and_write(action),
            TraceEvent::Located(_) => {
                for field in [Field::EthDst, Field::EthSrc, Field::VlanVid] {
                    self.look(field, field.ones());
                }
            }
        }
        self.steps.push(TraceStep { depth, event });
    }

    /// Looks at the bits of a table that decide which of its flows a packet matches.
    pub(crate) fn look_up(&mut self, table: &Table, found: Option<&Rank>) {
        let is_clause = |action: &Action| matches!(action, Action::Extension(one) if matches!(**one, Extension::Conjunction { .. }));
        let has_clauses = table.flows().any(|(_, flow)| flow.instructions.apply.iter().any(is_clause));
        for (rank, _) in table.flows() {
            if found.is_some_and(|found| rank.priority() < found.priority()) {
                break;
            }
            let is_found = Some(rank) == found;
            let fields = rank.matching().fields();
            if is_found || has_clauses {
                fields.for_each(|one| self.look(one.field, one.mask));
            } else {
                self.tell_apart(fields.collect());
            }
            if is_found && !has_clauses {
                break;
            }
        }
    }

    /// Looks at one field of a flow that does not match, unless bits that were looked at before
    /// tell already that it does not.
    fn tell_apart(&mut self, fields: Vec<FieldMatch>) {
        let differs = |one: &FieldMatch, within: u128| {
            let value = self.now.get(one.field);
            value.is_none_or(|value| (value ^ one.value) & one.mask & within != 0)
        };
        let known = |one: &FieldMatch| {
            let bits = |map: &BTreeMap<Field, u128>| map.get(&one.field).copied().unwrap_or(0);
            bits(&self.looked_at) | bits(&self.written) | if is_of_switch(one.field) { u128::MAX } else { 0 }
        };
        if fields.iter().any(|one| self.now.has(one.field) && differs(one, known(one))) {
            return;
        }
        let Some(place) = fields.iter().position(|one| differs(one, u128::MAX)) else { return };
        // What says that the packet has the field comes before it.
        let needed = |one: &&FieldMatch| {
            matches!(one.field, Field::EthType | Field::IpProto | Field::VlanVid | Field::Icmpv6Type)
        };
        let looked: Vec<FieldMatch> =
            fields[..place].iter().filter(needed).chain([&fields[place]]).copied().collect();
        looked.iter().for_each(|one| self.look(one.field, one.mask));
    }

    /// Looks at bits of a field: those that are still as they arrived belong to the result.
    fn look(&mut self, field: Field, mask: u128) {
        let (Some(now), Some(arrived)) = (self.now.get(field), self.arrived.get(field)) else { return };
        let bits = mask & !self.written.get(&field).copied().unwrap_or(0);
        // A difference comes from a connection (NAT, the original tuple), or from `resubmit`.
        let is_other = (now ^ arrived) & bits != 0;
        if bits != 0 && !is_other && !is_of_switch(field) {
            *self.looked_at.entry(field).or_default() |= bits;
        }
    }

    fn write(&mut self, field: Field, mask: u128) {
        *self.written.entry(field).or_default() |= mask;
    }

    fn look_all(&mut self, fields: &[Field]) {
        for field in fields {
            if self.now.has(*field) {
                self.look(*field, field.ones());
            }
        }
    }

    fn read_and_write(&mut self, action: &Action) {
        let all = |field: Field| (field, field.ones());
        let (field, mask) = match action {
            Action::SetField(field, _) => all(*field),
            Action::ModVlanVid(_) => all(Field::VlanVid),
            Action::ModVlanPcp(_) => all(Field::VlanPcp),
            Action::SetNwTtl(_) => all(Field::NwTtl),
            Action::SetMplsTtl(_) => all(Field::MplsTtl),
            Action::PushVlan(_) | Action::PopVlan => {
                self.write(Field::VlanPcp, Field::VlanPcp.ones());
                all(Field::VlanVid)
            }
            Action::DecNwTtl | Action::CopyTtlOut | Action::CopyTtlIn => {
                self.look_all(&[Field::NwTtl, Field::MplsTtl]);
                return;
            }
            Action::DecMplsTtl => return self.look_all(&[Field::MplsTtl]),
            Action::Extension(extension) => return self.read_and_write_more(extension),
            _ => return,
        };
        self.write(field, mask);
    }

    fn read_and_write_more(&mut self, extension: &Extension) {
        match extension {
            Extension::Set { field, mask, .. } => self.write(*field, *mask),
            Extension::Move { from, to } => {
                self.look_bits(*from);
                self.write(to.field, mask(*to));
            }
            Extension::Push(bits) => self.look_bits(*bits),
            Extension::Pop(bits) => self.write(bits.field, mask(*bits)),
            Extension::OutputTo { port, .. } => self.look_bits(*port),
            Extension::FinTimeout { .. } => self.look_all(&[Field::TcpFlags]),
            Extension::Learn(learn) => {
                for spec in &learn.specs {
                    if let Source::Packet(bits) = spec.source {
                        self.look_bits(bits);
                    }
                }
            }
            Extension::Multipath(Multipath { fields, to, .. }) => {
                self.look_all(hashed(*fields));
                self.write(to.field, mask(*to));
            }
            Extension::Bundle(Bundle { fields, to, is_backup, .. }) => {
                if !is_backup {
                    self.look_all(hashed(*fields));
                }
                if let Some(to) = to {
                    self.write(to.field, mask(*to));
                }
            }
            Extension::Ct(ct) => {
                if let Zone::Field(bits) = ct.zone {
                    self.look_bits(bits);
                }
                self.look_all(&FLOW);
            }
            _ => {}
        }
    }

    /// Looks at what chooses a bucket.
    pub(crate) fn look_at_hash(&mut self) {
        self.look_all(&LINK);
        self.look_all(&FLOW);
    }

    fn look_bits(&mut self, bits: Bits) {
        self.look(bits.field, mask(bits));
    }

    pub(crate) fn finish(self, outcomes: Vec<PacketOutcome>) -> Trace {
        let Tracer { steps, arrived, now, looked_at, .. } = self;
        let value =
            |field, mask| arrived.get(field).map(|value| FieldMatch { field, value: value & mask, mask });
        let looked_at = FIELDS.iter().filter_map(|info| value(info.field, *looked_at.get(&info.field)?));
        Trace { looked_at: looked_at.collect(), steps, arrived, ended: now, outcomes }
    }
}

/// Returns whether a field comes from earlier steps, not from the packet.
fn is_of_switch(field: Field) -> bool {
    field != Field::InPort && field.is_pipeline()
}

fn mask(bits: Bits) -> u128 {
    u128::MAX >> (128 - u32::from(bits.width)) << bits.from
}

/// The fields of a hash, where the packet has them.
fn hashed(fields: HashFields) -> &'static [Field] {
    match fields {
        HashFields::EthSrc => &[Field::EthSrc],
        HashFields::NwSrc => &[Field::Ipv4Src, Field::Ipv6Src],
        HashFields::NwDst => &[Field::Ipv4Dst, Field::Ipv6Dst],
        HashFields::SymmetricL3 => &FLOW[1..5],
        HashFields::SymmetricL3L4 | HashFields::SymmetricL3L4Udp => &FLOW,
        HashFields::SymmetricL4 => &[
            Field::EthDst,
            Field::EthSrc,
            Field::EthType,
            Field::VlanVid,
            Field::IpProto,
            Field::Ipv4Src,
            Field::Ipv4Dst,
            Field::Ipv6Src,
            Field::Ipv6Dst,
            Field::TcpSrc,
            Field::TcpDst,
            Field::SctpSrc,
            Field::SctpDst,
        ],
    }
}
