//! The native part of the Python package `veilset`: a run on a thread of its own, which Python waits for, stops and asks
//! about. What a run is stands in the library, and what its options mean in the program's crate.

mod errors;
mod frame;
mod party;

use pyo3::prelude::*;

/// The native part of `veilset`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::frame::Frame;
    #[pymodule_export]
    use crate::party::{Run, add_peer, identity, new_identity, operations, options, peers, remove_peer};
}
