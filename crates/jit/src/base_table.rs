//! The rules of a plan's base as rows of operations, with their counters.

use crate::cells::FlowCell;
use crate::template::{Arena, GENERIC, Template, Templates};
use fastpath_plan::TablePlan;
use std::sync::Arc;

/// The most words of a row: a template and its operands.
const STRIDE_MAX: usize = 16;

/// Operations and counters of the rules of a plan's base.
#[derive(Debug)]
pub(crate) struct BaseTable {
    /// The words of a row.
    pub(crate) stride: usize,
    pub(crate) rows: Box<[u64]>,
    pub(crate) arena: Arena,
    pub(crate) templates: Templates,
    /// The cells of each worker.
    pub(crate) cells: Vec<Arc<[FlowCell]>>,
}

impl BaseTable {
    /// Compiles the rules of a settled plan to rows.
    pub(crate) fn new(plan: &TablePlan, workers: usize) -> BaseTable {
        let (mut arena, mut templates) = (Arena::default(), Templates::default());
        let mut what = Vec::with_capacity(plan.rules().len());
        let mut stride = 1;
        for rule in plan.rules() {
            let known = Template::of(&rule.instructions, &mut arena);
            let known = known.filter(|(_, operands)| operands.len() < STRIDE_MAX);
            let (number, operands) = match known {
                Some((template, operands)) => (templates.add(template), operands),
                None => (GENERIC, Vec::new()),
            };
            stride = stride.max(1 + operands.len());
            what.push((number, operands));
        }
        let rows = lay_out(stride, &what);
        let cells = cells(workers, what.len());
        BaseTable { stride, rows, arena, templates, cells }
    }
}

/// Lays out templates and operands as rows of the same length.
fn lay_out(stride: usize, what: &[(u32, Vec<u64>)]) -> Box<[u64]> {
    let mut rows = vec![0; stride * what.len()];
    for (row, (template, operands)) in rows.chunks_exact_mut(stride).zip(what) {
        row[0] = (*template).into();
        if *template != GENERIC {
            row[1..=operands.len()].copy_from_slice(operands);
        }
    }
    rows.into()
}

/// Allocates cells for each worker.
fn cells(workers: usize, count: usize) -> Vec<Arc<[FlowCell]>> {
    (0..workers).map(|_| (0..count).map(|_| FlowCell::default()).collect()).collect()
}
