//! A link with one queue, in one loop over known arrivals and departures.

use super::discipline::{DisciplineOracle, OracleContext, OraclePacket};
use super::exact::Exact;
use crate::packet::{Fate, Packet};
use crate::qdisc::QueueSpec;
use fastpath_units::{Duration, Rate, Rng, Time};
use std::collections::BTreeMap;

/// Runs `arrivals` through a link with a queue of a discipline that decides at dequeue. Returns the
/// time and the fate of each packet: delivered packets leave after `delay`, dropped ones when they
/// are dropped. Panics for a discipline that [`Oracle`](super::Oracle) covers.
pub fn run(
    spec: &QueueSpec,
    rate: Option<Rate>,
    delay: Duration,
    arrivals: &[(Time, Packet<()>)],
    rng: &mut Rng,
) -> BTreeMap<usize, (Time, Fate)> {
    let DisciplineOracle::Queue(mut queue) = super::discipline_oracle(spec) else {
        panic!("{spec} decides at arrival: use Oracle")
    };
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
            queue.enqueue(packet, &mut OracleContext { now, on_wire, rng, fates: &mut fates });
            next += 1;
        }
        if sending.is_none() {
            sending = queue.dequeue(&mut OracleContext { now, on_wire: None, rng, fates: &mut fates });
            if let Some(packet) = sending {
                free = if free.is_before(now) { Exact::at(now) } else { free };
                free = rate.map_or(free, |rate| free.plus_bits(u128::from(packet.len) * 8, rate));
            }
            later = if sending.is_none() { queue.later(now) } else { None };
        }
    }
}
