//! From netem's arguments to a pipe.

use super::{Arguments, Loss};
use fastpath_link::{Limit, LossSpec, PipeSpec, QueueSpec};

/// Something netem can and a pipe cannot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what} is not emulated here: leave it out")]
pub struct Unsupported {
    /// What.
    pub what: &'static str,
}

impl Arguments {
    /// The pipe that does to packets what netem does with these arguments. Where the two differ:
    ///
    /// - The delay follows the transmission, as on a wire. In the kernel's netem the delay of a packet that waits
    ///   for the rate runs while it waits.
    /// - `limit` bounds the packets that wait for the rate. In the kernel those under delay count too, so a long
    ///   delay at a high rate drops packets there that pass here.
    pub fn pipe(&self) -> Result<PipeSpec, Unsupported> {
        let unsupported = [
            ("jitter", !self.jitter.is_zero()),
            ("ecn in place of loss", self.ecn),
            ("duplicate", !self.duplicate.probability.is_never()),
            ("corrupt", !self.corrupt.probability.is_never()),
            ("reorder", !self.reorder.probability.is_never()),
            ("a negative packet overhead", self.packet_overhead < 0),
            ("a cell size", self.cell_size > 0),
            ("slot", self.slot.is_some()),
        ];
        if let Some(&(what, _)) = unsupported.iter().find(|(_, asked)| *asked) {
            return Err(Unsupported { what });
        }
        Ok(PipeSpec {
            rate: self.rate,
            overhead: self.packet_overhead as u32,
            delay: self.delay,
            loss: self.loss()?,
            queue: QueueSpec::DropTail(Limit::Packets(self.limit)),
            ..PipeSpec::default()
        })
    }

    fn loss(&self) -> Result<LossSpec, Unsupported> {
        match self.loss {
            None => Ok(LossSpec::Never),
            Some(Loss::Random(chance)) if chance.correlation.is_never() => Ok(chance.probability.into()),
            Some(Loss::Random(_)) => Err(Unsupported { what: "correlated loss" }),
            Some(Loss::State { .. }) => Err(Unsupported { what: "loss state" }),
            Some(Loss::GilbertElliott { .. }) => Err(Unsupported { what: "loss gemodel" }),
        }
    }
}
