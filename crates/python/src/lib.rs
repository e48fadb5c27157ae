//! The native part of the Python package `veilset`: a run on its own thread, which Python waits for, stops and queries. The
//! library defines the runs, and `veilset-app` the meaning of their options.

mod errors;
mod frame;
mod link;
mod people;
mod run;
mod spread;
mod stream;

use pyo3::prelude::*;

/// The native part of `veilset`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::errors::as_python;
    #[pymodule_export]
    use crate::frame::{Frame, frame_of};
    #[pymodule_export]
    use crate::people::{add_peer, identity, new_identity, peers, remove_peer};
    #[pymodule_export]
    use crate::run::{Leftover, Run, guide, operations, options};
    #[pymodule_export]
    use crate::spread::{
        digest_keys, label, piece_hashes, piece_result, piece_shards, piece_sums, piece_text_keys, run_lane,
        ticket_lane,
    };
    /// The version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
