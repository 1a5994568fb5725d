//! Ethernet addresses.

use std::fmt;
use std::str::FromStr;

/// A 48-bit Ethernet address, printed and parsed as `02:00:00:00:00:2a`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MacAddr(pub [u8; 6]);

/// The error of parsing a [`MacAddr`]; holds the text.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{0}' is not a MAC address; write six bytes in hexadecimal, for example 02:00:00:00:00:2a")]
pub struct ParseMacError(pub String);

impl MacAddr {
    /// The broadcast address, `ff:ff:ff:ff:ff:ff`.
    pub const BROADCAST: MacAddr = MacAddr([0xff; 6]);
    /// `00:00:00:00:00:00`, which is not the address of a station.
    pub const ZERO: MacAddr = MacAddr([0; 6]);

    /// Returns the `index`-th locally administered unicast address: `02:00` followed by the index.
    /// The addresses of a topology are distinct and the same in every run.
    #[inline]
    pub const fn from_index(index: u32) -> MacAddr {
        let [a, b, c, d] = index.to_be_bytes();
        MacAddr([0x02, 0x00, a, b, c, d])
    }

    /// Returns whether the group bit is set, which is true for the broadcast address too.
    #[inline]
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Returns whether this is `ff:ff:ff:ff:ff:ff`.
    #[inline]
    pub fn is_broadcast(self) -> bool {
        self == MacAddr::BROADCAST
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        f.pad(&format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}"))
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for MacAddr {
    type Err = ParseMacError;

    fn from_str(text: &str) -> Result<MacAddr, ParseMacError> {
        parse(text).ok_or_else(|| ParseMacError(text.to_owned()))
    }
}

/// Parses six pairs of hexadecimal digits separated by `:`, or by `-` as some vendors print them.
fn parse(text: &str) -> Option<MacAddr> {
    let separator = if text.contains('-') { '-' } else { ':' };
    let mut parts = text.split(separator);
    let mut address = [0; 6];
    for byte in &mut address {
        let part = parts.next()?;
        if part.len() != 2 || !part.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(MacAddr(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_prints_and_parses() {
        let mac = MacAddr([0x02, 0, 0xab, 0xcd, 0xef, 0x01]);
        assert_eq!(mac.to_string(), "02:00:ab:cd:ef:01");
        assert_eq!("02:00:AB:cd:ef:01".parse(), Ok(mac));
        assert_eq!("02-00-ab-cd-ef-01".parse(), Ok(mac));
    }

    #[test]
    fn other_texts_are_rejected() {
        for bad in [
            "",
            "02:00:ab:cd:ef",
            "02:00:ab:cd:ef:01:02",
            "2:0:ab:cd:ef:1",
            "+2:00:ab:cd:ef:01",
            "02:00-ab:cd:ef:01",
        ] {
            assert!(bad.parse::<MacAddr>().is_err(), "{bad}");
        }
    }

    #[test]
    fn indexed_addresses_are_distinct_local_unicast() {
        assert_eq!(MacAddr::from_index(42).to_string(), "02:00:00:00:00:2a");
        assert!(!MacAddr::from_index(u32::MAX).is_multicast());
        assert!(MacAddr::BROADCAST.is_multicast());
    }
}
