//! The fields outside of a frame as messages name them: those of packet-ins, packet-outs and
//! resumed packets.

use crate::field::{Field, REGISTERS};
use crate::key::PipelineFields;
use crate::matching::FieldMatch;

impl PipelineFields {
    /// Changes the fields that these name and that can be changed.
    pub fn set_all(&mut self, values: impl Iterator<Item = FieldMatch>) {
        for one in values {
            let before = self.register(one.field);
            self.set(one.field, before & !one.mask | one.value);
        }
    }

    /// Returns the port of entry, and what is not 0 of the fields that are not in the frame
    /// (§7.4.1; those of Open vSwitch as it does).
    pub fn matches(&self) -> Vec<FieldMatch> {
        let PipelineFields { metadata, tunnel_id, registers, mark, tunnel, connection, .. } = *self;
        let others: [(Field, u128); 9] = [
            (Field::Metadata, metadata.into()),
            (Field::TunnelId, tunnel_id.into()),
            (Field::PktMark, mark.into()),
            (Field::TunSrc, tunnel.0.into()),
            (Field::TunDst, tunnel.1.into()),
            (Field::CtState, connection.state.bits().into()),
            (Field::CtZone, connection.zone.into()),
            (Field::CtMark, connection.mark.into()),
            (Field::CtLabel, connection.label),
        ];
        let mut fields = vec![FieldMatch::exact(Field::InPort, self.in_port.into())];
        let set = others.into_iter().filter(|(_, value)| *value != 0);
        fields.extend(set.map(|(field, value)| FieldMatch::exact(field, value)));
        for (field, value) in REGISTERS.into_iter().zip(registers) {
            // Four registers of 32 bits.
            let parts = (0..4).map(|place| u128::from(u32::MAX) << (32 * place));
            let mask = parts.filter(|part| value & part != 0).fold(0, |mask, part| mask | part);
            if mask != 0 {
                fields.push(FieldMatch::masked(field, value, mask));
            }
        }
        fields
    }
}
