//! What is wrong with a message, with the numbers that OpenFlow 1.3.5 §7.4.4 gives it. Those of
//! OpenFlow 1.0 are in `v10/errors.rs`, those that differ in 1.4 in `v14/errors.rs`.

use super::bundle_fault::BundleFault;
use super::versions::Versions;
use fastpath_switch::Refusal;

/// OFPET_EXPERIMENTER.
pub(crate) const EXPERIMENTER: u16 = 0xffff;

/// Why a message cannot be processed. [`Fault::Refused`] has the reasons of the switch itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it, the specification numbers it")]
pub enum Fault {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("no common protocol version; this switch supports OpenFlow {0}")]
    Incompatible(Versions),
    #[error("version {0:#04x} is not the negotiated one")]
    BadVersion(u8),
    #[error("message type {0} is unknown, or not valid for a switch")]
    BadType(u8),
    #[error("multipart type {0} is unknown")]
    BadMultipart(u16),
    #[error("experimenter {0:#010x} is unknown")]
    BadExperimenter(u32),
    #[error("message type {0} of a known experimenter is unknown")]
    BadSubtype(u32),
    #[error("format {0} of messages is not supported")]
    FormatUnsupported(u32),
    #[error("the message has the wrong length")]
    BadLen,
    #[error("buffer {0:#x} is unknown; this switch buffers no packets")]
    BufferUnknown(u32),
    #[error("a slave may not change the switch")]
    IsSlave,
    #[error("the packet cannot be sent")]
    BadPacket,
    #[error("the parts of a request exceed the limit")]
    MultipartOverflow,
    #[error("a list of actions has the wrong length")]
    ActionBadLen,
    #[error("an action of experimenter {0:#010x} is unknown")]
    ActionBadExperimenter(u32),
    #[error("an action of Open vSwitch has type {0}, which is not supported")]
    ActionBadSubtype(u16),
    #[error("an action of Open vSwitch has an argument that is not supported")]
    ActionBadArgument,
    #[error("a set-field action has the wrong length")]
    ActionBadSetLen,
    #[error("a set-field action sets an unknown field")]
    ActionBadSetType,
    #[error("an instruction of experimenter {0:#010x} is unknown")]
    InstructionBadExperimenter(u32),
    #[error("an instruction has the wrong length")]
    InstructionBadLen,
    #[error("match type {0} is unknown")]
    MatchBadType(u16),
    #[error("a match has the wrong length")]
    MatchBadLen,
    #[error("a bucket has the wrong length")]
    BucketBadLen,
    #[error("a meter band has the wrong length")]
    BandBadLen,
    #[error("the hardware address is not that of port {0}")]
    PortBadHwAddr(u32),
    #[error("port configuration bits {0:#x} are unknown")]
    PortBadConfig(u32),
    #[error("a port cannot advertise {0:#x}")]
    PortBadAdvertise(u32),
    #[error("table {0} does not exist")]
    TableModBadTable(u8),
    #[error("table configuration {0:#x} is unknown")]
    TableModBadConfig(u32),
    #[error("port {0:#x} does not exist")]
    QueueBadPort(u32),
    #[error("queue {0} does not exist")]
    QueueBadQueue(u32),
    #[error("configuration flags {0:#x} are not supported")]
    ConfigBadFlags(u16),
    #[error("the generation id is older than that of the current master")]
    RoleStale,
    #[error("role {0} is unknown")]
    RoleBad(u32),
    #[error("table features name a table that does not exist")]
    TableFeaturesBadTable,
    #[error("table features contain metadata bits that do not exist")]
    TableFeaturesBadMetadata,
    #[error("a property of table features is unknown")]
    TableFeaturesBadType,
    #[error("table features have the wrong length")]
    TableFeaturesBadLen,
    #[error("table features exceed those of the table")]
    TableFeaturesBadArgument,
    #[error("a property of type {0} is unknown")]
    PropertyBadType(u16),
    #[error("a property has the wrong length")]
    PropertyBadLen,
    #[error("a property has a value that is not supported")]
    PropertyBadValue,
    #[error("a property of type {0} occurs twice")]
    PropertyDuplicate(u16),
    #[error("a property of experimenter {0:#010x} is unknown")]
    PropertyBadExperimenter(u32),
    #[error("instruction type {0} is not supported")]
    InstructionUnsupported(u16),
    #[error("the match of a packet-out has field {0}, which is part of the packet")]
    PipelineFieldsOnly(&'static str),
    #[error("table features command {0} is not supported; 0 is")]
    TableFeaturesBadCommand(u8),
    #[error("table features {0:#x} are not supported: all tables are ingress tables")]
    TableFeaturesBadFeatures(u32),
    #[error("flow monitor {0} exists already")]
    MonitorExists(u32),
    #[error("a controller may have at most {0} flow monitors")]
    MonitorsFull(usize),
    #[error("flow monitor {0} does not exist")]
    MonitorUnknown(u32),
    #[error("flow monitor command {0} is unknown")]
    MonitorBadCommand(u8),
    #[error("flow monitor flags {0:#x} are unknown, or none")]
    MonitorBadFlags(u16),
    #[error("table {0} of a flow monitor does not exist")]
    MonitorBadTable(u8),
    #[error("an emergency flow has timeouts")]
    EmergencyTimeout,
    #[error("this switch has no emergency flows")]
    EmergencyFlow,
    #[error(transparent)]
    Bundle(#[from] BundleFault),
    #[error("an addition of a flow is restricted to cookies")]
    AdditionToCookies,
    #[error("the first message must be a hello")]
    NoHello,
    #[error("the packet that is to go on was not paused by this switch, or is damaged")]
    ContinuationStale,
}

impl Fault {
    /// Returns the `type` and `code` of the error message (§7.4.4).
    pub const fn numbers(&self) -> (u16, u16) {
        match self {
            Fault::Refused(refusal) => refusal.numbers(),
            Fault::Incompatible(_) => (0, 0),
            Fault::BadVersion(_) => (1, 0),
            Fault::BadType(_) => (1, 1),
            Fault::BadMultipart(_) => (1, 2),
            Fault::BadExperimenter(_) => (1, 3),
            Fault::BadSubtype(_) => (1, 4),
            Fault::FormatUnsupported(_) => (1, 5),
            Fault::BadLen => (1, 6),
            Fault::BufferUnknown(_) => (1, 8),
            Fault::IsSlave => (1, 10),
            Fault::BadPacket => (1, 12),
            Fault::MultipartOverflow => (1, 13),
            Fault::ActionBadLen => (2, 1),
            Fault::ActionBadExperimenter(_) => (2, 2),
            // OFPBAC_BAD_EXPERIMENTER_TYPE and OFPBAC_BAD_ARGUMENT.
            Fault::ActionBadSubtype(_) => (2, 3),
            Fault::ActionBadArgument => (2, 5),
            Fault::ActionBadSetType => (2, 13),
            Fault::ActionBadSetLen => (2, 14),
            Fault::InstructionBadExperimenter(_) => (3, 5),
            Fault::InstructionBadLen => (3, 7),
            Fault::MatchBadType(_) => (4, 0),
            Fault::MatchBadLen => (4, 1),
            Fault::BucketBadLen => (6, 12),
            Fault::BandBadLen => (12, 8),
            Fault::PortBadHwAddr(_) => (7, 1),
            Fault::PortBadConfig(_) => (7, 2),
            Fault::PortBadAdvertise(_) => (7, 3),
            Fault::TableModBadTable(_) => (8, 0),
            Fault::TableModBadConfig(_) => (8, 1),
            Fault::QueueBadPort(_) => (9, 0),
            Fault::QueueBadQueue(_) => (9, 1),
            Fault::ConfigBadFlags(_) => (10, 0),
            Fault::RoleStale => (11, 0),
            Fault::RoleBad(_) => (11, 2),
            Fault::TableFeaturesBadTable => (13, 0),
            Fault::TableFeaturesBadMetadata => (13, 1),
            Fault::TableFeaturesBadType => (13, 2),
            Fault::TableFeaturesBadLen => (13, 3),
            Fault::TableFeaturesBadArgument => (13, 4),
            // OpenFlow 1.3 has no emergency flows, and ignores cookies in additions
            // (OFPFMFC_UNKNOWN).
            Fault::EmergencyTimeout | Fault::EmergencyFlow | Fault::AdditionToCookies => (5, 0),
            // OFPET_EXPERIMENTER, with a number of the ONF.
            Fault::Bundle(fault) => (EXPERIMENTER, fault.number()),
            Fault::NoHello => (0, 1),
            // NXR_STALE.
            Fault::ContinuationStale => (EXPERIMENTER, 35),
            other => other.later_numbers(),
        }
    }

    /// Returns the numbers of faults that only later versions have.
    const fn later_numbers(&self) -> (u16, u16) {
        match self {
            Fault::PropertyBadType(_) => (14, 0),
            Fault::PropertyBadLen => (14, 1),
            Fault::PropertyBadValue => (14, 2),
            Fault::PropertyDuplicate(_) => (14, 4),
            Fault::PropertyBadExperimenter(_) => (14, 5),
            Fault::MonitorsFull(_) => (16, 0),
            Fault::MonitorExists(_) => (16, 1),
            Fault::MonitorUnknown(_) => (16, 3),
            Fault::MonitorBadCommand(_) => (16, 4),
            Fault::MonitorBadFlags(_) => (16, 5),
            Fault::MonitorBadTable(_) => (16, 6),
            Fault::InstructionUnsupported(_) => (3, 1),
            Fault::PipelineFieldsOnly(_) => (1, 17),
            Fault::TableFeaturesBadFeatures(_) => (13, 8),
            Fault::TableFeaturesBadCommand(_) => (13, 9),
            // All others are above; OFPBRC_BAD_TYPE.
            _ => (1, 1),
        }
    }
}
