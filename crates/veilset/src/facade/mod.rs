//! The main interface for users of the library, re-exported at the root of the crate.

mod functions;
mod keys;
mod options;
pub mod outcome;
mod peer;
mod stop;

pub use functions::{count, id, intersect, share, sum, union};
pub use keys::{Keys, KeysBuilder};
pub use options::Options;
pub use outcome::Outcome;
pub use peer::{Authenticated, Peer};
pub use stop::Stop;
