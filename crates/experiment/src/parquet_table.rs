//! The table of all runs as Apache Parquet.

use super::plan::Experiment;
use super::table::{Column, columns};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::sync::Arc;

/// The table as Apache Parquet, without compression.
pub(super) fn bytes(
    plan: &Experiment,
    runs: &[fastpath_record::Repetition],
) -> Result<Vec<u8>, ParquetError> {
    let columns = columns(plan, runs);
    let field = |column: &Column| -> Result<Arc<Type>, ParquetError> {
        let builder = match column {
            Column::Whole(name, _) => {
                Type::primitive_type_builder(name, Physical::INT64).with_repetition(Repetition::REQUIRED)
            }
            Column::Text(name, _) => Type::primitive_type_builder(name, Physical::BYTE_ARRAY)
                .with_repetition(Repetition::REQUIRED)
                .with_logical_type(Some(LogicalType::String)),
            Column::Real(name, _) => {
                Type::primitive_type_builder(name, Physical::DOUBLE).with_repetition(Repetition::OPTIONAL)
            }
        };
        Ok(Arc::new(builder.build()?))
    };
    let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    let schema = Arc::new(Type::group_type_builder("runs").with_fields(fields).build()?);
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(WriterProperties::new()))?;
    let mut group = writer.next_row_group()?;
    for column in &columns {
        let mut out = group.next_column()?.expect("a column of the schema");
        match column {
            Column::Whole(_, values) => out.typed::<Int64Type>().write_batch(values, None, None)?,
            Column::Text(_, values) => {
                let values: Vec<ByteArray> = values.iter().map(|value| value.as_str().into()).collect();
                out.typed::<ByteArrayType>().write_batch(&values, None, None)?
            }
            Column::Real(_, values) => {
                let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
                let present: Vec<f64> = values.iter().flatten().copied().collect();
                out.typed::<DoubleType>().write_batch(&present, Some(&levels), None)?
            }
        };
        out.close()?;
    }
    group.close()?;
    writer.close()?;
    Ok(bytes)
}
