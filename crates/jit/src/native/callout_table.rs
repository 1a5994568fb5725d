//! The signatures of the Rust functions that generated code calls. The functions themselves are in
//! `callouts.rs`; code generation needs only this table, so that it does not depend on them.

use super::context::Context;

/// A function that generated code calls with the context and up to three numbers.
///
/// # Safety
/// `context` is the pointer that [`Worker::run`](super::Worker::run) passed to the generated code
/// that makes the call. It was derived from an exclusive borrow of the whole worker, whose first
/// field is the context, and no other reference to the worker is in use during the call.
pub(super) type Callout = unsafe extern "C" fn(*mut Context, u64, u64, u64) -> u64;

/// A function that executes a whole packet, as generated code does.
///
/// # Safety
/// As for [`Callout`]; the worker was also prepared for a packet and for the program that the
/// function belongs to.
pub(super) type PipelineFn = unsafe extern "C" fn(*mut Context) -> u64;

/// Answer: the packet goes on unchanged.
pub(super) const GO: u64 = 0;
/// Answer: the packet has ended.
pub(super) const STOP: u64 = 1;
/// Answer: the packet goes on, changed.
pub(super) const CHANGED: u64 = 2;

/// The callouts. In the signatures below, `table` and `rule` are the numbers of the table and the
/// rule that the packet is at, and `_` is ignored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Callouts {
    /// `(_, _, _) -> GO`. Reads the whole key of the packet into the context.
    pub(super) parse: Callout,
    /// `(table, _, _) -> rule`. Finds the rule in a table that has changed since its code was
    /// generated; all ones when no rule matches. Sets the row and the cell in the context.
    pub(super) find: Callout,
    /// `(table, rule, _) -> DONE`. Executes the rule's instructions and the rest of the pipeline.
    pub(super) execute: Callout,
    /// `(table, _, _) -> DONE`. Executes the rest of the pipeline, from a table that has no
    /// generated code.
    pub(super) resume: Callout,
    /// `(table, rule, _) -> GO, CHANGED or STOP`. Applies the rule's meter.
    pub(super) meter: Callout,
    /// `(table, rule, action) -> GO or STOP`. Executes the action of this number.
    pub(super) act: Callout,
    /// `(table, rule, action) -> GO`. Executes the output or group action of this number; the frame
    /// stays as it is.
    pub(super) emit: Callout,
    /// `(table, rule, port) -> GO`. Sends a copy of the packet out of a port.
    pub(super) emit_port: Callout,
    /// `(field, value, _) -> GO`. Sets a field of a packet that generated code has not parsed.
    pub(super) set_field: Callout,
    /// `(table, rule, _) -> GO or STOP`. Decrements the IP TTL of a packet that generated code has
    /// not parsed.
    pub(super) dec_nw_ttl: Callout,
    /// `(table, rule, _) -> STOP`. Ends a packet whose TTL is invalid.
    pub(super) invalid_ttl: Callout,
    /// `(table, rule, _) -> GO`. Clears and writes the action set as the rule says.
    pub(super) write: Callout,
    /// `(table, rule, _) -> DONE`. Writes the action set as the rule says and executes it.
    pub(super) finish: Callout,
    /// Executes a packet without any generated code.
    pub(super) pipeline: PipelineFn,
}
