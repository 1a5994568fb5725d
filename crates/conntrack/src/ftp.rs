//! Messages of FTP that offer a connection for data: PORT, EPRT, and the answers to PASV and EPSV
//! (RFC 959 §4.1.2, RFC 2428).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

/// Bytes of a segment that are looked at. Messages with offers are shorter.
const LOOKED_AT: usize = 256;

/// What the payload of a segment says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum FtpMessage {
    /// It offers no connection.
    Other,
    /// It offers one, and is wrong.
    Malformed,
    /// It offers one.
    Offer(FtpOffer),
}

/// A connection that a peer waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FtpOffer {
    /// The address; `None`: that of the peer.
    pub(crate) address: Option<u128>,
    pub(crate) port: u16,
    /// Where address and port stand in the payload.
    pub(crate) place: Range<usize>,
    style: Style,
}

/// How address and port are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Style {
    /// Six numbers.
    Commas,
    /// Both as text, with this between them.
    Delimited(u8),
    /// The port alone.
    Port,
}

/// A text that is read from its beginning.
struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_until(&mut self, is_it: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(|byte| !is_it(byte)) {
            self.at += 1;
        }
    }

    fn take(&mut self, wanted: u8) -> Option<()> {
        (self.peek()? == wanted).then(|| self.at += 1)
    }

    /// Reads a number of at most this value.
    fn number(&mut self, most: u32) -> Option<u32> {
        let start = self.at;
        let mut value: u32 = 0;
        while let Some(digit) = self.peek().filter(u8::is_ascii_digit) {
            value = value.checked_mul(10)?.checked_add(u32::from(digit - b'0'))?;
            self.at += 1;
        }
        (self.at > start && value <= most).then_some(value)
    }
}

impl FtpMessage {
    /// Reads the payload of a segment from the client, or of a reply.
    pub(crate) fn parse(payload: &[u8], is_reply: bool, is_v6: bool) -> FtpMessage {
        let text = &payload[..payload.len().min(LOOKED_AT)];
        let begins = |word: &str| {
            let (start, rest) = text.split_at(text.len().min(word.len()));
            start.eq_ignore_ascii_case(word.as_bytes()) && rest.first().is_none_or(|byte| *byte == b' ')
        };
        let read = match is_reply {
            false if begins("PORT") && !is_v6 => commas,
            false if begins("EPRT") => delimited,
            true if begins("227") && !is_v6 => commas,
            true if begins("229") => port_only,
            _ => return FtpMessage::Other,
        };
        // What has no end of line yet may be a part.
        if !text.contains(&b'\n') {
            return FtpMessage::Other;
        }
        let mut reader = Reader { text, at: 4 };
        match read(&mut reader).filter(|offer| offer.port > 0) {
            Some(offer) if offer.address.is_none_or(|_| offer.is_of(is_v6)) => FtpMessage::Offer(offer),
            _ => FtpMessage::Malformed,
        }
    }
}

/// Reads `h1,h2,h3,h4,p1,p2`, which text may stand before.
fn commas(reader: &mut Reader<'_>) -> Option<FtpOffer> {
    reader.skip_until(|byte| byte.is_ascii_digit() || byte == b'\n');
    let start = reader.at;
    let mut numbers = [0; 6];
    for (i, number) in numbers.iter_mut().enumerate() {
        if i > 0 {
            reader.take(b',')?;
        }
        *number = reader.number(255)?;
    }
    let [a, b, c, d, high, low] = numbers;
    let address = u128::from(a << 24 | b << 16 | c << 8 | d);
    let port = (high << 8 | low) as u16;
    Some(FtpOffer { address: Some(address), port, place: start..reader.at, style: Style::Commas })
}

/// Reads `|1|192.0.2.1|6275|`, with any delimiter.
fn delimited(reader: &mut Reader<'_>) -> Option<FtpOffer> {
    reader.skip_until(|byte| byte != b' ');
    let delimiter = reader.peek().filter(u8::is_ascii_punctuation)?;
    reader.take(delimiter)?;
    let family = reader.number(2)?;
    reader.take(delimiter)?;
    let start = reader.at;
    reader.skip_until(|byte| byte == delimiter || byte == b'\n');
    let text = std::str::from_utf8(&reader.text[start..reader.at]).ok()?;
    let address = match (family, text.parse().ok()?) {
        (1, IpAddr::V4(address)) => address.to_bits().into(),
        (2, IpAddr::V6(address)) => address.to_bits(),
        _ => return None,
    };
    reader.take(delimiter)?;
    let port = reader.number(0xffff)? as u16;
    let place = start..reader.at;
    reader.take(delimiter)?;
    Some(FtpOffer { address: Some(address), port, place, style: Style::Delimited(delimiter) })
}

/// Reads `(|||6446|)`, which text stands before.
fn port_only(reader: &mut Reader<'_>) -> Option<FtpOffer> {
    reader.skip_until(|byte| byte == b'(' || byte == b'\n');
    reader.take(b'(')?;
    let delimiter = reader.peek()?;
    for _ in 0..3 {
        reader.take(delimiter)?;
    }
    let start = reader.at;
    let port = reader.number(0xffff)? as u16;
    let place = start..reader.at;
    reader.take(delimiter)?;
    Some(FtpOffer { address: None, port, place, style: Style::Port })
}

impl FtpOffer {
    /// Returns whether the address can be one of this family, as it is written.
    fn is_of(&self, is_v6: bool) -> bool {
        let is_wide = self.address.is_some_and(|address| address > u128::from(u32::MAX));
        is_wide == is_v6
    }

    /// Returns what stands in the place of another address and port.
    pub(crate) fn text(&self, address: u128, port: u16, is_v6: bool) -> String {
        let v4 = Ipv4Addr::from_bits(address as u32);
        match self.style {
            Style::Commas => {
                let [a, b, c, d] = v4.octets();
                format!("{a},{b},{c},{d},{},{}", port >> 8, port & 0xff)
            }
            Style::Delimited(delimiter) if is_v6 => {
                format!("{}{}{port}", Ipv6Addr::from_bits(address), char::from(delimiter))
            }
            Style::Delimited(delimiter) => format!("{v4}{}{port}", char::from(delimiter)),
            Style::Port => port.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(text: &str, is_reply: bool, is_v6: bool) -> Option<(Option<u128>, u16, String)> {
        let FtpMessage::Offer(offer) = FtpMessage::parse(text.as_bytes(), is_reply, is_v6) else {
            return None;
        };
        let other = format!(
            "{}{}{}",
            &text[..offer.place.start],
            offer.text(0x0102_0304, 258, is_v6),
            &text[offer.place.end..]
        );
        Some((offer.address, offer.port, other))
    }

    #[test]
    fn offers_are_read_and_written() {
        let some = |address, port, text: &str| Some((address, port, text.to_owned()));
        let v4 = Some(0x0a00_0001);
        assert_eq!(offer("PORT 10,0,0,1,4,1\r\n", false, false), some(v4, 1025, "PORT 1,2,3,4,1,2\r\n"));
        assert_eq!(offer("port 10,0,0,1,4,1\n", false, false), some(v4, 1025, "port 1,2,3,4,1,2\n"));
        let passive = "227 Entering Passive Mode (10,0,0,1,255,255).\r\n";
        let moved = "227 Entering Passive Mode (1,2,3,4,1,2).\r\n";
        assert_eq!(offer(passive, true, false), some(v4, 65535, moved));
        assert_eq!(offer("EPRT |1|10.0.0.1|80|\r\n", false, false), some(v4, 80, "EPRT |1|1.2.3.4|258|\r\n"));
        let v6 = Some(0xfd00_0000_0000_0000_0000_0000_0000_0001);
        assert_eq!(offer("EPRT !2!fd00::1!80!\r\n", false, true), some(v6, 80, "EPRT !2!::102:304!258!\r\n"));
        let extended = "229 Entering Extended Passive Mode (|||6446|)\r\n";
        let moved = "229 Entering Extended Passive Mode (|||258|)\r\n";
        assert_eq!(offer(extended, true, false), some(None, 6446, moved));
    }

    #[test]
    fn what_offers_nothing_is_told_from_what_is_wrong() {
        let parse = |text: &str, is_reply| FtpMessage::parse(text.as_bytes(), is_reply, false);
        for text in ["", "USER x\r\n", "PORTAL 1\r\n", "227 x (1,2,3,4,5,6)\r\n", "PORT 10,0,0,1,4,"] {
            assert_eq!(parse(text, false), FtpMessage::Other, "{text}");
        }
        assert_eq!(parse("PORT 10,0,0,1,4,1\r\n", true), FtpMessage::Other, "a server offers by 227");
        let wrong = ["PORT \r\n", "PORT 10,0,0,256,4,1\r\n", "PORT 10,0,0,1,0,0\r\n", "EPRT |3|a|1|\r\n"];
        for text in wrong.into_iter().chain(["EPRT |1|10.0.0.1|99999|\r\n", "EPRT |2|fd00::1|80|\r\n"]) {
            assert_eq!(parse(text, false), FtpMessage::Malformed, "{text}");
        }
        assert_eq!(parse("229 ok (||6446|)\r\n", true), FtpMessage::Malformed);
    }
}
