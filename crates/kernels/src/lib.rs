//! Batch kernels of veilset.
