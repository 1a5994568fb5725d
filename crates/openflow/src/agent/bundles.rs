//! Requests about bundles: all changes of a bundle are made at one instant, or none.

use super::bundle_store::BundledMessage;
use super::changes::{change_observed, change_one};
use super::connection::Connection;
use super::event::Event;
use super::flow_events::FlowChanges;
use super::switch_state::SwitchState;
use crate::message::{BundleFault, BundleMessage, BundleStep, Fault, Message, bundle_reply};
use fastpath_switch::misses;
use fastpath_switch::{Removed, Switch, Version};
use fastpath_units::Time;
use std::time::Instant;

/// OFPBF_TIME: the bundle is to be committed at a time. OpenFlow 1.5.
const SCHEDULED: u16 = 1 << 2;
/// Bytes of a message that an error message repeats (§7.4.4: at least 64).
const ERROR_DATA: usize = 64;

/// Answers an experimenter message of the ONF.
pub(super) fn answer(
    state: &mut SwitchState,
    connection: &mut Connection,
    xid: u32,
    kind: u32,
    data: &[u8],
) -> Result<(), Fault> {
    if connection.is_slave() {
        return Err(Fault::IsSlave);
    }
    let (now, message) = (Instant::now(), BundleMessage::read(xid, kind, data)?);
    if connection.codec.version() == Version::V15 && message.flags() & SCHEDULED != 0 {
        return Err(BundleFault::Scheduled.into());
    }
    match message {
        BundleMessage::Add { id, flags, message } => {
            // A copy: what is refused here does not change the forms of the connection.
            let (xid, content) = { connection.codec }.decode(message)?;
            let may_be_bundled =
                matches!(content, Message::FlowMod { .. } | Message::GroupMod(_) | Message::MeterMod(_));
            if !may_be_bundled {
                return Err(BundleFault::Unsupported.into());
            }
            let head = message[..message.len().min(ERROR_DATA)].to_vec();
            let bundled = BundledMessage { xid, head, message: content };
            Ok(connection.bundles.add(now, (id, flags), message.len(), bundled)?)
        }
        BundleMessage::Control { id, step, flags } => {
            match step {
                BundleStep::Open => connection.bundles.open(now, id, flags)?,
                BundleStep::Close => connection.bundles.close(now, id, flags)?,
                BundleStep::Discard => drop(connection.bundles.discard(id)?),
                BundleStep::Commit => {
                    let messages = connection.bundles.take(now, id, flags)?;
                    commit(state, connection, &messages)?;
                }
            }
            connection.say(xid, &bundle_reply(id, step, flags));
            Ok(())
        }
    }
}

/// Makes all changes, or none. A message that is refused is answered as if it had come alone.
fn commit(
    state: &mut SwitchState,
    connection: &mut Connection,
    messages: &[BundledMessage],
) -> Result<(), Fault> {
    connection.has_changed = true;
    let are_misses_wanted = state.are_misses_wanted;
    let (id, is_monitored, mut events) = (connection.id, state.are_flows_monitored, Vec::new());
    let change = |switch: &mut Switch, now| {
        if are_misses_wanted {
            misses::remove(switch, now);
        }
        // First on a copy, which is dropped if one is refused.
        let tried = make_all(&mut switch.clone(), now, messages, change_one);
        let made = tried.and_then(|_| {
            make_all(switch, now, messages, |switch, now, message| match is_monitored {
                true => change_observed(switch, now, message, &mut events),
                false => change_one(switch, now, message),
            })
        });
        if are_misses_wanted {
            misses::add(switch, now);
        }
        made
    };
    match state.control.change(change) {
        Ok(removed) => {
            let (number, author) = (state.number_changes(1), messages.first().map(|one| (id, one.xid)));
            state.async_messages.push(Event::FlowChanges(FlowChanges { number, author, flows: events }));
            let requests = messages.iter().filter_map(|one| Event::of_request(id, one.xid, &one.message));
            requests.for_each(|event| state.async_messages.push(event));
            state.report_removed(removed);
            Ok(())
        }
        Err((place, fault)) => {
            let BundledMessage { xid, head, .. } = &messages[place];
            connection.refuse(*xid, &fault, head);
            Err(BundleFault::Failed.into())
        }
    }
}

/// Makes the changes in order. `Err` has the first that is refused.
fn make_all(
    switch: &mut Switch,
    now: Time,
    messages: &[BundledMessage],
    mut change: impl FnMut(&mut Switch, Time, &Message) -> Result<Vec<Removed>, Fault>,
) -> Result<Vec<Removed>, (usize, Fault)> {
    let mut removed = Vec::new();
    for (place, BundledMessage { message, .. }) in messages.iter().enumerate() {
        removed.extend(change(switch, now, message).map_err(|fault| (place, fault))?);
    }
    Ok(removed)
}
