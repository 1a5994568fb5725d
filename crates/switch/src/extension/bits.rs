//! Some of the bits of a field.

use crate::field::Field;
use crate::key::Key;

/// Adjacent bits of a field: `width` of them from bit `from`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Bits {
    /// The field.
    pub field: Field,
    /// The lowest bit.
    pub from: u8,
    /// How many; at least 1.
    pub width: u8,
}

impl Bits {
    /// Returns all bits of a field.
    pub fn all(field: Field) -> Bits {
        Bits { field, from: 0, width: field.bits() as u8 }
    }

    /// Returns the bits of register `n`, from 0 to 15.
    pub fn register(n: u8) -> Bits {
        let place = usize::from(n / 4) % 4;
        Bits { field: crate::field::REGISTERS[place], from: (3 - n % 4) * 32, width: 32 }
    }

    /// Returns as many ones as there are bits, right-aligned.
    pub fn ones(self) -> u128 {
        u128::MAX >> (128 - u32::from(self.width.clamp(1, 128)))
    }

    /// Returns the bits in their place in the field.
    pub fn mask(self) -> u128 {
        self.ones() << self.from
    }

    /// Returns whether they are within the field.
    pub fn is_within_field(self) -> bool {
        self.width > 0 && u32::from(self.from) + u32::from(self.width) <= self.field.bits()
    }

    /// Returns their value in a packet, right-aligned; `None` if it does not have the field.
    pub fn of(self, key: &Key) -> Option<u128> {
        Some(key.get(self.field)? >> self.from & self.ones())
    }
}
