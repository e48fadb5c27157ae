//! The program as its users run it: processes, real files, TLS.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// In a program, `pub` marks the items that a module offers to other modules.
#![allow(unreachable_pub)]

mod audit;
mod book;
mod check;
mod checked;
mod common;
mod completions;
mod config;
mod data;
mod dependencies;
mod documents;
mod exchange;
mod facade;
mod failures;
mod filter;
mod id;
mod inputs;
mod kept;
mod limits;
mod lists;
mod mutants;
mod parties;
mod plan;
mod policy;
mod prepare;
mod progress;
mod proxy;
mod refusals;
mod report;
mod resume;
mod several;
mod several_refused;
mod share;
mod shipped;
mod signals;
mod terminal;
mod threads;
mod trusted;
