//! The flows whose `learn` actions keep other flows (`delete_learned`, ovs-actions(7)): once none
//! is left that teaches a table and a cookie, the flows of that table with that cookie go too.

use crate::action::{Action, Extension};
use crate::flow::Instructions;
use std::collections::BTreeMap;
use std::mem;

/// The flows of a table that teach.
#[derive(Clone, Debug, Default)]
pub(crate) struct Learners {
    /// How many actions teach each.
    counts: BTreeMap<Lesson, usize>,
    /// What was taught and is not any more, since it was last taken.
    forgotten: Vec<Lesson>,
}

/// What is taught: flows of this table with this cookie.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Lesson {
    pub(crate) table: u8,
    pub(crate) cookie: u64,
}

impl Learners {
    /// Counts a flow with these instructions.
    pub(crate) fn add(&mut self, instructions: &Instructions) {
        lessons(instructions).for_each(|lesson| *self.counts.entry(lesson).or_default() += 1);
    }

    /// Stops counting a flow with these instructions.
    pub(crate) fn remove(&mut self, instructions: &Instructions) {
        for lesson in lessons(instructions) {
            let Some(count) = self.counts.get_mut(&lesson) else { continue };
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&lesson);
                self.forgotten.push(lesson);
            }
        }
    }

    /// Returns whether no flow of the table teaches.
    pub(crate) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Returns whether a flow of the table teaches this.
    pub(crate) fn teach(&self, lesson: Lesson) -> bool {
        self.counts.contains_key(&lesson)
    }

    /// Takes what is not taught any more. It may be taught again since, here or elsewhere.
    pub(crate) fn take_forgotten(&mut self) -> Vec<Lesson> {
        mem::take(&mut self.forgotten)
    }
}

fn lessons(instructions: &Instructions) -> impl Iterator<Item = Lesson> {
    let all = instructions.actions().filter(|action| matches!(action, Action::Extension(_)));
    all.flat_map(Action::all).filter_map(|action| match action {
        Action::Extension(extension) => match &**extension {
            Extension::Learn(learn) if learn.delete_learned => {
                Some(Lesson { table: learn.table, cookie: learn.cookie })
            }
            _ => None,
        },
        _ => None,
    })
}

#[cfg(test)]
mod tests;
