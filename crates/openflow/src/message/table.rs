//! Table features (§7.3.5.5) as lists of numbers.

use super::bytes::{ByteReader, Write};
use super::fault::Fault;
use super::oxm;
use fastpath_switch::Field;

/// The features of one table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableFeatures {
    /// The number of the table.
    pub table_id: u8,
    /// Its name, at most 31 bytes.
    pub name: String,
    /// Metadata bits it can match.
    pub metadata_match: u64,
    /// Metadata bits it can write.
    pub metadata_write: u64,
    /// Configuration bits.
    pub config: u32,
    /// Most flows that it holds.
    pub entries: u32,
    /// The other features.
    pub properties: Vec<Property>,
}

/// The packets for which a property holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum For {
    /// Packets that match a flow.
    Flows,
    /// Packets of the table-miss flow.
    Miss,
}

/// One property of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Property {
    /// Types of instructions.
    Instructions(For, Vec<u16>),
    /// Tables that goto may lead to.
    NextTables(For, Vec<u8>),
    /// Types of actions that can be written.
    WriteActions(For, Vec<u16>),
    /// Types of actions that can be applied.
    ApplyActions(For, Vec<u16>),
    /// Fields that can be matched, and whether with a mask.
    Match(Vec<(Field, bool)>),
    /// Fields that need not be matched.
    Wildcards(Vec<(Field, bool)>),
    /// Fields that set-field can set in written actions.
    WriteSetField(For, Vec<(Field, bool)>),
    /// Fields that set-field can set in applied actions.
    ApplySetField(For, Vec<(Field, bool)>),
}

/// Reads table features until the end.
pub(crate) fn read(r: &mut ByteReader<'_>) -> Result<Vec<TableFeatures>, Fault> {
    read_by(r, |_| Ok(()))
}

/// Reads table features of OpenFlow 1.5, which have a command until the end: only that to replace
/// all (OFPTFC_REPLACE).
pub(crate) fn read_replacing(r: &mut ByteReader<'_>) -> Result<Vec<TableFeatures>, Fault> {
    read_by(r, |command| if command == 0 { Ok(()) } else { Err(Fault::TableFeaturesBadCommand(command)) })
}

fn read_by(
    r: &mut ByteReader<'_>,
    check_command: impl Fn(u8) -> Result<(), Fault>,
) -> Result<Vec<TableFeatures>, Fault> {
    let mut tables = Vec::new();
    while !r.is_empty() {
        let len = usize::from(r.u16()?);
        let inside = len.checked_sub(2).ok_or(Fault::TableFeaturesBadLen)?;
        if inside > r.len() || inside < 62 {
            return Err(Fault::TableFeaturesBadLen);
        }
        let mut body = r.part(inside, Fault::TableFeaturesBadLen)?;
        let table_id = body.u8()?;
        check_command(body.u8()?)?;
        body.skip(4)?;
        let name = body.text(32)?;
        let (metadata_match, metadata_write) = (body.u64()?, body.u64()?);
        let (config, entries) = (body.u32()?, body.u32()?);
        let mut properties = Vec::new();
        while !body.is_empty() {
            properties.push(read_property(&mut body)?);
        }
        tables.push(TableFeatures {
            table_id,
            name,
            metadata_match,
            metadata_write,
            config,
            entries,
            properties,
        });
    }
    Ok(tables)
}

fn read_property(r: &mut ByteReader<'_>) -> Result<Property, Fault> {
    let (kind, len) = (r.u16()?, usize::from(r.u16()?));
    let inside = len.checked_sub(4).ok_or(Fault::TableFeaturesBadLen)?;
    let body = r.part(inside, Fault::TableFeaturesBadLen)?;
    r.skip(len.next_multiple_of(8) - len)?;
    let whom = if kind & 1 == 0 { For::Flows } else { For::Miss };
    Ok(match kind {
        0 | 1 => Property::Instructions(whom, read_types(body)?),
        2 | 3 => Property::NextTables(whom, { body }.rest().to_vec()),
        4 | 5 => Property::WriteActions(whom, read_types(body)?),
        6 | 7 => Property::ApplyActions(whom, read_types(body)?),
        8 => Property::Match(read_fields(body)?),
        10 => Property::Wildcards(read_fields(body)?),
        12 | 13 => Property::WriteSetField(whom, read_fields(body)?),
        14 | 15 => Property::ApplySetField(whom, read_fields(body)?),
        _ => return Err(Fault::TableFeaturesBadType),
    })
}

/// Reads types of instructions or actions, each with a length of 4, or more for experimenters.
fn read_types(mut r: ByteReader<'_>) -> Result<Vec<u16>, Fault> {
    let mut types = Vec::new();
    while !r.is_empty() {
        let (kind, len) = (r.u16()?, usize::from(r.u16()?));
        r.skip(len.checked_sub(4).ok_or(Fault::TableFeaturesBadLen)?)?;
        types.push(kind);
    }
    Ok(types)
}

fn read_fields(mut r: ByteReader<'_>) -> Result<Vec<(Field, bool)>, Fault> {
    let mut fields = Vec::new();
    while !r.is_empty() {
        let (class, head, _) = (r.u16()?, r.u8()?, r.u8()?);
        let field = Field::from_number(head >> 1).filter(|_| class == 0x8000);
        fields.push((field.ok_or(Fault::TableFeaturesBadArgument)?, head & 1 != 0));
    }
    Ok(fields)
}

impl TableFeatures {
    /// Writes the item.
    pub fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.u16(0);
        out.u8(self.table_id);
        out.zeros(5);
        out.text(&self.name, 32);
        out.u64(self.metadata_match);
        out.u64(self.metadata_write);
        out.u32(self.config);
        out.u32(self.entries);
        self.properties.iter().for_each(|property| property.write(out));
        out.length(start, start);
    }
}

impl Property {
    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let kind = |base: u16, whom: &For| base + u16::from(*whom == For::Miss);
        let number = match self {
            Property::Instructions(whom, _) => kind(0, whom),
            Property::NextTables(whom, _) => kind(2, whom),
            Property::WriteActions(whom, _) => kind(4, whom),
            Property::ApplyActions(whom, _) => kind(6, whom),
            Property::Match(_) => 8,
            Property::Wildcards(_) => 10,
            Property::WriteSetField(whom, _) => kind(12, whom),
            Property::ApplySetField(whom, _) => kind(14, whom),
        };
        out.u16(number);
        out.u16(0);
        match self {
            Property::Instructions(_, types)
            | Property::WriteActions(_, types)
            | Property::ApplyActions(_, types) => {
                for kind in types {
                    out.u16(*kind);
                    out.u16(4);
                }
            }
            Property::NextTables(_, tables) => out.extend_from_slice(tables),
            Property::Match(fields)
            | Property::Wildcards(fields)
            | Property::WriteSetField(_, fields)
            | Property::ApplySetField(_, fields) => {
                fields.iter().for_each(|(field, has_mask)| oxm::write_header(out, *field, *has_mask));
            }
        }
        out.length(start, start + 2);
        out.pad(start);
    }
}
