//! What is written back: columns of rows that exist.

use crate::replica::Replica;
use crate::value::{Datum, Uuid};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// New contents of columns of one row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowUpdate {
    /// The table.
    pub table: &'static str,
    /// The row.
    pub row: Uuid,
    /// The columns.
    pub columns: BTreeMap<&'static str, Datum>,
}

impl RowUpdate {
    /// Sets columns of a row.
    pub fn new(
        table: &'static str,
        row: Uuid,
        columns: impl IntoIterator<Item = (&'static str, Datum)>,
    ) -> RowUpdate {
        RowUpdate { table, row, columns: columns.into_iter().collect() }
    }

    /// Returns the operation (RFC 7047 §5.2.3). It does nothing to a row that is gone.
    pub(crate) fn to_json(&self) -> Value {
        let columns = self.columns.iter().map(|(name, datum)| ((*name).to_owned(), datum.to_json()));
        json!({
            "op": "update",
            "table": self.table,
            "where": [["_uuid", "==", ["uuid", self.row.to_string()]]],
            "row": columns.collect::<Map<_, _>>(),
        })
    }
}

/// Returns the part of `wanted` in which the database differs: without rows that are gone, columns
/// that the schema lacks, and columns that have the wanted content. A column that is not monitored
/// is always written.
pub fn differences(replica: &Replica, wanted: impl IntoIterator<Item = RowUpdate>) -> Vec<RowUpdate> {
    let mut updates: Vec<RowUpdate> = Vec::new();
    for mut update in wanted {
        let Some(row) = replica.row(update.table, update.row) else { continue };
        update.columns.retain(|name, datum| {
            let is_same = row.column(name) == datum || row.column(name).is_empty() && datum.is_empty();
            let is_known = row.has(name) && is_same;
            replica.has_column(update.table, name) && !is_known
        });
        if !update.columns.is_empty() {
            updates.push(update);
        }
    }
    updates
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replica::DbRow;

    #[test]
    fn only_what_differs_in_rows_that_exist_is_written() {
        let names = ["ofport", "error", "mtu", "statistics"].map(str::to_owned);
        let mut replica = Replica::new([("Interface".to_owned(), names.into())].into());
        let (here, gone) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let row = [("ofport", Datum::one(1)), ("error", Datum::EMPTY), ("mtu", Datum::one(1500))];
        replica.insert("Interface", here, DbRow::new(row));
        let update = |uuid, columns: &[(&'static str, Datum)]| {
            RowUpdate::new("Interface", uuid, columns.iter().cloned())
        };
        let wanted = [
            update(gone, &[("ofport", Datum::one(2))]),
            update(
                here,
                &[
                    ("ofport", Datum::one(2)),
                    ("error", Datum::EMPTY),
                    ("mtu", Datum::one(1500)),
                    ("statistics", Datum::map([("rx_packets", 1)])),
                    ("link_state", Datum::one("up")),
                ],
            ),
        ];
        let written = differences(&replica, wanted);
        let statistics = ("statistics", Datum::map([("rx_packets", 1)]));
        assert_eq!(written, [update(here, &[("ofport", Datum::one(2)), statistics])]);
        let json = written[0].to_json();
        assert_eq!(json["where"][0][2][1], "00000000-0000-0000-0000-000000000001");
        assert_eq!(json["row"]["ofport"], 2);
        assert!(differences(&replica, [update(here, &[("ofport", Datum::one(1))])]).is_empty());
    }
}
