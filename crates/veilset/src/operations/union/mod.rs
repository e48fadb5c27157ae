//! Union: the receiver learns the items of both sets, and nothing of which of its own items the sender
//! has; the sender learns nothing.

pub mod krtw19;
pub mod mqrpmt;
