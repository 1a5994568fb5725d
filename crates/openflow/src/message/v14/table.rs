//! What a table does when it is full or nearly so (OpenFlow 1.4 §7.3.4.1, §7.3.5.17, §7.4.5).

use super::properties;
use crate::message::bytes::{ByteReader, Write, measured};
use crate::message::fault::Fault;
use crate::message::table_config::{TableConfig, TableMod, TableStatus, Vacancy};

/// OFPTMPT_EVICTION.
const EVICTION: u16 = 2;
/// OFPTMPT_VACANCY.
const VACANCY: u16 = 3;

pub(crate) fn read_mod(mut r: ByteReader<'_>) -> Result<TableMod, Fault> {
    let table_id = r.u8()?;
    r.skip(3)?;
    let config = r.u32()?;
    let mut request = TableMod { table_id, config, eviction: None, vacancy: None };
    properties::read(&mut r, |kind, body| {
        let is_new = match kind {
            EVICTION => request.eviction.replace(body.u32()?).is_none(),
            VACANCY => request.vacancy.replace(read_vacancy(body)?).is_none(),
            other => return Err(properties::unknown(other, body)),
        };
        body.end()?;
        if is_new { Ok(()) } else { Err(Fault::PropertyDuplicate(kind)) }
    })?;
    Ok(request)
}

pub(crate) fn write_mod(out: &mut Vec<u8>, request: &TableMod) {
    out.u8(request.table_id);
    out.zeros(3);
    out.u32(request.config);
    write_properties(out, request.eviction, request.vacancy);
}

pub(crate) fn read_config(r: &mut ByteReader<'_>) -> Result<TableConfig, Fault> {
    let mut r = measured(r)?;
    let table_id = r.u8()?;
    r.skip(1)?;
    let config = r.u32()?;
    let mut table = TableConfig { table_id, config, eviction: None, vacancy: None };
    properties::read(&mut r, |kind, body| {
        match kind {
            EVICTION => table.eviction = Some(body.u32()?),
            VACANCY => table.vacancy = Some(read_vacancy(body)?),
            _ => {}
        }
        Ok(())
    })?;
    Ok(table)
}

pub(crate) fn write_config(out: &mut Vec<u8>, table: &TableConfig) {
    let start = out.len();
    out.u16(0);
    out.u8(table.table_id);
    out.u8(0);
    out.u32(table.config);
    write_properties(out, table.eviction, table.vacancy);
    out.length(start, start);
}

pub(crate) fn read_status(mut r: ByteReader<'_>) -> Result<TableStatus, Fault> {
    let reason = r.u8()?;
    r.skip(7)?;
    let table = read_config(&mut r)?;
    r.end()?;
    Ok(TableStatus { reason, table })
}

pub(crate) fn write_status(out: &mut Vec<u8>, status: &TableStatus) {
    out.u8(status.reason);
    out.zeros(7);
    write_config(out, &status.table);
}

fn read_vacancy(r: &mut ByteReader<'_>) -> Result<Vacancy, Fault> {
    let vacancy = Vacancy { down: r.u8()?, up: r.u8()?, now: r.u8()? };
    r.skip(1)?;
    Ok(vacancy)
}

fn write_properties(out: &mut Vec<u8>, eviction: Option<u32>, vacancy: Option<Vacancy>) {
    if let Some(flags) = eviction {
        properties::write(out, EVICTION, |out| out.u32(flags));
    }
    if let Some(Vacancy { down, up, now }) = vacancy {
        properties::write(out, VACANCY, |out| out.extend_from_slice(&[down, up, now, 0]));
    }
}
