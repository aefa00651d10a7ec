//! Every name that other programs see: one table per kind of name, with the text that the docs are generated from.
//!
//! A label, annotation, taint, finalizer, condition type or reason that is not in these tables does not exist. Code uses
//! the constants, `cargo xtask` prints the tables. Start with [`label`] and [`annotation`].

pub mod annotation;
pub mod condition;
pub mod event;
pub mod finalizer;
pub mod label;
pub mod reason;
pub mod taint;

/// One row of a table of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name {
    /// The text as it appears on the wire.
    pub text: &'static str,
    /// What it means, for whoever meets it in an object.
    pub doc: &'static str,
}

/// A table with its heading, for the generated docs.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// The heading, a plural noun.
    pub title: &'static str,
    /// The rows in the order of the source.
    pub rows: &'static [Name],
}

/// All tables, in the order in which the docs print them.
pub const TABLES: &[Table] = &[
    Table {
        title: "Labels",
        rows: label::TABLE,
    },
    Table {
        title: "Annotations",
        rows: annotation::TABLE,
    },
    Table {
        title: "Taints",
        rows: taint::TABLE,
    },
    Table {
        title: "Finalizers",
        rows: finalizer::TABLE,
    },
    Table {
        title: "Condition types",
        rows: condition::TABLE,
    },
    Table {
        title: "Condition reasons",
        rows: reason::TABLE,
    },
    Table {
        title: "Event reasons",
        rows: event::TABLE,
    },
];

/// Declares documented string constants and the table that lists them.
macro_rules! names {
    ($( $(#[doc = $doc:literal])+ $name:ident = $text:expr; )+) => {
        $( $(#[doc = $doc])+ pub const $name: &str = $text; )+

        /// The rows of this table.
        pub const TABLE: &[crate::names::Name] =
            &[$( crate::names::Name { text: $name, doc: concat!($($doc),+) } ),+];
    };
}
use names;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_name_is_documented_and_listed_once_in_its_table() {
        for table in TABLES {
            let distinct: BTreeSet<&str> = table.rows.iter().map(|row| row.text).collect();

            assert_eq!(
                distinct.len(),
                table.rows.len(),
                "{} has a repeated name",
                table.title
            );
            assert!(
                table.rows.iter().all(|row| row.doc.trim().ends_with('.')),
                "{}",
                table.title
            );
        }
    }
}
