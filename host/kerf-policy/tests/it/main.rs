//! The policy host from outside: real components, good and bad.

mod guest;
mod guests;
mod load;
mod misbehave;
mod seam;
mod select;
mod swap;
