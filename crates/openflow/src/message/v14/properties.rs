//! Properties: a type, a length, and a body, padded to 8 bytes (OpenFlow 1.4 §7.2.2.1 and others).

use crate::message::bytes::{ByteReader, Write};
use crate::message::fault::Fault;

/// OFPPDPT_EXPERIMENTER and the same number of all other kinds of properties.
const EXPERIMENTER: u16 = 0xffff;

/// Passes the type and the body of each property until the end.
pub(crate) fn read<'a>(
    r: &mut ByteReader<'a>,
    mut take: impl FnMut(u16, &mut ByteReader<'a>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    while !r.is_empty() {
        let bad = |_| Fault::PropertyBadLen;
        let (kind, len) = (r.u16().map_err(bad)?, usize::from(r.u16().map_err(bad)?));
        let inside = len.checked_sub(4).ok_or(Fault::PropertyBadLen)?;
        let mut body = r.part(inside, Fault::PropertyBadLen).map_err(bad)?;
        r.skip(len.next_multiple_of(8) - len).map_err(bad)?;
        take(kind, &mut body)?;
    }
    Ok(())
}

/// Refuses a property that a switch does not know.
pub(crate) fn unknown(kind: u16, body: &mut ByteReader<'_>) -> Fault {
    match kind {
        EXPERIMENTER => body.u32().map_or(Fault::PropertyBadLen, Fault::PropertyBadExperimenter),
        _ => Fault::PropertyBadType(kind),
    }
}

/// Writes a property.
pub(crate) fn write(out: &mut Vec<u8>, kind: u16, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.u16(kind);
    out.u16(0);
    body(out);
    out.length(start, start + 2);
    out.pad(start);
}
