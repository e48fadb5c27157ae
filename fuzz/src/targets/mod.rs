//! The table of targets. A new decoder gets a file here, a line in the table, and seeds in `seeds.rs`.

mod arrow;
mod compact_set;
mod csv;
mod elements;
mod filter;
mod frames;
mod hello;
mod json_lines;
mod parquet;
mod run_receiver;
mod run_sender;
mod text;

/// A decoder of data from a peer or a user.
pub struct Target {
    /// The name of the target's file.
    pub name: &'static str,
    /// The longest useful input, in bytes.
    pub longest: usize,
    /// Whether the decoder is a library's, which panics on some damaged files and reserves more memory than it uses. The tested
    /// code catches the panics.
    pub decoder_panics: bool,
    /// Runs the target on an input, and panics if the outcome is wrong.
    pub run: fn(&[u8]),
}

const fn target(name: &'static str, longest: usize, run: fn(&[u8])) -> Target {
    Target { name, longest, decoder_panics: false, run }
}

/// All targets.
pub static TARGETS: [Target; 12] = [
    target("frames", 2048, frames::run),
    target("elements", 2048, elements::run),
    target("compact_set", 4096, compact_set::run),
    target("hello", 4096, hello::run),
    target("run_receiver", 65536, run_receiver::run),
    target("run_sender", 65536, run_sender::run),
    target("text", 512, text::run),
    target("csv", 1024, csv::run),
    Target { decoder_panics: true, ..target("parquet", 4096, parquet::run) },
    Target { decoder_panics: true, ..target("arrow", 4096, arrow::run) },
    target("json_lines", 2048, json_lines::run),
    target("filter", 4096, filter::run),
];
