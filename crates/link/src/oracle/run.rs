//! A link with one queue, in one loop over known arrivals and departures.

use super::discipline::{DisciplineOracle, OracleContext, OraclePacket};
use super::exact::Exact;
use crate::packet::{Fate, Packet};
use crate::spec::PipeSpec;
use fastpath_units::{Rng, Time};
use std::collections::BTreeMap;

/// Runs `arrivals` through a link with a queue of a discipline that decides at dequeue; of `spec`
/// it reads queue, rate, overhead and delay. Returns the time and the fate of each packet:
/// delivered packets leave after the delay, dropped ones when they are dropped. Panics for a
/// discipline that [`Oracle`](super::Oracle) covers.
pub fn run(spec: &PipeSpec, arrivals: &[(Time, Packet<()>)], rng: &mut Rng) -> BTreeMap<usize, (Time, Fate)> {
    let &PipeSpec { rate, delay, ref queue, .. } = spec;
    let DisciplineOracle::Queue(mut queue) = super::discipline_oracle(queue) else {
        panic!("{queue} decides at arrival: use Oracle")
    };
    let overhead = u64::from(spec.overhead);
    let mut fates = BTreeMap::new();
    let mut sending: Option<OraclePacket> = None;
    let mut free = Exact::at(Time::ZERO);
    let mut next = 0;
    let mut later = None;
    loop {
        let arrival = arrivals.get(next).map(|(at, _)| *at);
        let departure = sending.map(|_| free.floor());
        let Some(now) = [departure, arrival, later].into_iter().flatten().min() else { return fates };
        if departure == Some(now) {
            let sent = sending.take().expect("it has just been sent");
            fates.insert(sent.id, (now + delay, Fate::Delivered { marked: sent.marked }));
        } else if later == Some(now) {
            later = None;
        } else {
            let (_, Packet { len, flow, traffic_class, .. }) = arrivals[next];
            let len = u64::from(len);
            let packet = OraclePacket { id: next, arrived: now, len, flow, traffic_class, marked: false };
            let on_wire = sending.map(|packet| packet.len);
            let wire_free = Time::ZERO;
            let fates = &mut fates;
            queue.enqueue(packet, &mut OracleContext { now, on_wire, overhead, wire_free, rng, fates });
            next += 1;
        }
        if sending.is_none() {
            let wire_free = rate.map_or(Time::ZERO, |_| free.floor());
            let (on_wire, fates) = (None, &mut fates);
            sending = queue.dequeue(&mut OracleContext { now, on_wire, overhead, wire_free, rng, fates });
            if let Some(packet) = sending {
                free = if free.is_before(now) { Exact::at(now) } else { free };
                free = rate.map_or(free, |rate| free.plus_bits(u128::from(packet.len + overhead) * 8, rate));
            }
            later = if sending.is_none() { queue.later(now) } else { None };
        }
    }
}
