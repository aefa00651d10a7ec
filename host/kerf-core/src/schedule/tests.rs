//! One scenario per rule of scheduling. `kit` has the words that they are written in.

mod basics;
mod buffers;
mod burst;
mod filters;
mod kit;
mod limits;
mod nodes;
mod packing;
mod preferences;
mod rehearsal;
mod topology;
mod user_reports;
