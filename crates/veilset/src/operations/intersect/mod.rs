//! Intersect: the receiver learns which of its items the sender has; the sender learns nothing.

pub mod mqrpmt;
