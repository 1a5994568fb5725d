//! The rows of the database as the server last sent them.

use crate::schema::Columns;
use crate::value::{Datum, Uuid, shortened};
use serde_json::Value;
use std::collections::BTreeMap;

/// Most rows of all tables.
const ROWS_MAX: usize = 200_000;

/// The monitored part of a database.
#[derive(Clone, Debug, Default)]
pub struct Replica {
    columns: Columns,
    tables: BTreeMap<String, BTreeMap<Uuid, DbRow>>,
    rows: usize,
}

/// A row of a table: its monitored columns.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DbRow(BTreeMap<String, Datum>);

/// Why an update of the server cannot be applied.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplicaError {
    /// It does not have the form of an update (RFC 7047 §4.1.6).
    #[error("an update of table {table} that cannot be read: {why}")]
    Malformed {
        /// The table, or what stands in its place.
        table: String,
        /// The mistake.
        why: String,
    },
    /// The database is larger than is accepted.
    #[error("more than {ROWS_MAX} rows")]
    TooManyRows,
}

impl DbRow {
    /// The content of a column; empty if the row does not have the column.
    pub fn column(&self, name: &str) -> &Datum {
        static EMPTY: Datum = Datum::EMPTY;
        self.0.get(name).unwrap_or(&EMPTY)
    }

    /// Whether the row has a column.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Makes a row of columns.
    pub fn new<'a>(columns: impl IntoIterator<Item = (&'a str, Datum)>) -> DbRow {
        DbRow(columns.into_iter().map(|(name, datum)| (name.to_owned(), datum)).collect())
    }

    fn parse(json: &Value) -> Result<DbRow, String> {
        let columns = json.as_object().ok_or("a row is an object")?;
        let column = |(name, value): (&String, &Value)| {
            let datum = Datum::from_json(value).map_err(|error| format!("column {name}: {error}"))?;
            Ok((name.clone(), datum))
        };
        columns.iter().map(column).collect::<Result<_, String>>().map(DbRow)
    }
}

impl Replica {
    /// An empty replica of a database with these columns.
    pub(crate) fn new(columns: Columns) -> Replica {
        Replica { columns, ..Replica::default() }
    }

    /// Whether the server's schema has a column.
    pub fn has_column(&self, table: &str, column: &str) -> bool {
        self.columns.get(table).is_some_and(|columns| columns.contains(column))
    }

    /// The rows of a table, in the order of their UUIDs.
    pub fn rows(&self, table: &str) -> impl Iterator<Item = (Uuid, &DbRow)> {
        self.tables.get(table).into_iter().flatten().map(|(uuid, row)| (*uuid, row))
    }

    /// A row.
    pub fn row(&self, table: &str, uuid: Uuid) -> Option<&DbRow> {
        self.tables.get(table)?.get(&uuid)
    }

    /// Adds or replaces a row, as the server would.
    pub fn insert(&mut self, table: &str, uuid: Uuid, row: DbRow) {
        let rows = self.tables.entry(table.to_owned()).or_default();
        self.rows += usize::from(rows.insert(uuid, row).is_none());
    }

    fn remove(&mut self, table: &str, uuid: Uuid) {
        let removed = self.tables.get_mut(table).and_then(|rows| rows.remove(&uuid));
        self.rows -= usize::from(removed.is_some());
    }

    /// Applies `<table-updates>` (RFC 7047 §4.1.6). Returns whether it holds any.
    pub(crate) fn apply(&mut self, updates: &Value) -> Result<bool, ReplicaError> {
        let malformed =
            |table: &str, why: &str| ReplicaError::Malformed { table: shortened(table), why: shortened(why) };
        let tables = updates.as_object().ok_or_else(|| malformed("?", "it is not an object"))?;
        let mut has_any = false;
        for (table, rows) in tables {
            let rows = rows.as_object().ok_or_else(|| malformed(table, "it is not an object"))?;
            for (uuid, update) in rows {
                let uuid = uuid.parse().map_err(|_| malformed(table, uuid))?;
                match &update["new"] {
                    Value::Null => self.remove(table, uuid),
                    row => {
                        let row = DbRow::parse(row).map_err(|why| malformed(table, &why))?;
                        self.insert(table, uuid, row);
                    }
                }
                has_any = true;
            }
        }
        if self.rows > ROWS_MAX { Err(ReplicaError::TooManyRows) } else { Ok(has_any) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const A: &str = "00000000-0000-0000-0000-00000000000a";

    #[test]
    fn rows_come_change_and_go() {
        let mut replica = Replica::default();
        let a: Uuid = A.parse().unwrap();
        let name = |replica: &Replica| replica.row("Port", a).map(|row| row.column("name").clone());
        assert_eq!(replica.apply(&json!({})), Ok(false));
        replica.apply(&json!({"Port": {A: {"new": {"name": "p1", "tag": ["set", []]}}}})).unwrap();
        assert_eq!(name(&replica), Some(Datum::one("p1")));
        assert_eq!(replica.row("Port", a).unwrap().column("lacp"), &Datum::EMPTY);
        replica.apply(&json!({"Port": {A: {"old": {"name": "p1"}, "new": {"name": "p2"}}}})).unwrap();
        assert_eq!(name(&replica), Some(Datum::one("p2")));
        assert_eq!(replica.rows, 1);
        assert_eq!(replica.apply(&json!({"Port": {A: {"old": {"name": "p2"}}}})), Ok(true));
        assert_eq!((name(&replica), replica.rows), (None, 0));
        replica.apply(&json!({"Port": {A: {"old": {"name": "p2"}}}})).unwrap();
        assert_eq!(replica.rows, 0, "a row that is gone cannot go again");
    }

    #[test]
    fn an_update_that_cannot_be_read_names_its_table() {
        let samples = [
            json!([]),
            json!({"Port": 5}),
            json!({"Port": {"x": {"new": {}}}}),
            json!({"Port": {A: {"new": 5}}}),
            json!({"Port": {A: {"new": {"name": 1.5}}}}),
        ];
        for json in samples {
            let error = Replica::default().apply(&json).unwrap_err().to_string();
            assert!(error.contains("Port") || error.contains('?'), "{error}");
        }
    }
}
