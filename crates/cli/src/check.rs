//! `veilset check`: what would run, what it costs, and what each side would learn.

use crate::plan::PartyPlan;
use crate::{as_options, print};
use std::cell::OnceCell;
use std::fmt::Write as _;
use veilset::error::{Error, Result};
use veilset::governance::gate::Gate;
use veilset::net::Connection;
use veilset::operations::Announced;
use veilset::rng::Prng;
use veilset::session::estimate::{Estimate, would_learn};
use veilset::session::run::{self, Checked, Request};
use veilset::session::{Proposal, Term};

/// Links for which the transfer time is printed, in megabits per second.
const LINKS: [u64; 2] = [10, 1000];

/// Agrees with the peer and prints the agreement.
pub fn run(
    plan: &PartyPlan,
    connection: Connection,
    request: &Request<'_>,
    gate: &mut Gate<'_>,
) -> Result<()> {
    let prepared = plan.job.prepared.is_some();
    let ours = OnceCell::new();
    let milliseconds = |proposal: &Proposal| {
        let estimate = Estimate::of(proposal, prepared, request.threads)?;
        Ok(ours.get_or_init(|| estimate).work.as_millis() as u64)
    };
    let checked = run::check(connection, request, gate, &milliseconds, &mut Prng::from_os()?)?;
    let ours = ours.into_inner().ok_or_else(|| Error::Bug("a check without an estimate".into()))?;
    print(as_options(&text(&checked, &ours)))
}

fn text(checked: &Checked, estimate: &Estimate) -> String {
    let Checked { proposal, their_milliseconds, .. } = checked;
    let their_milliseconds = their_milliseconds.iter().copied().max().unwrap_or(0);
    let Proposal { hello, ours, .. } = proposal;
    let peer = proposal.parties.peer();
    let theirs = peer.announced;
    let Estimate { sent, received, rounds, memory, work, .. } = *estimate;
    let our_milliseconds = work.as_millis() as u64;
    let who = match (&peer.name, peer.fingerprint) {
        (Some(name), Some(fingerprint)) => format!("{name} ({fingerprint})"),
        (_, Some(fingerprint)) => fingerprint.to_string(),
        _ => "a peer that is not authenticated, without TLS".into(),
    };
    // Writing to a string cannot fail.
    let mut text =
        String::from("check: both sides ask for the same thing and allow it; nothing was computed\n");
    let _ = writeln!(text, "  {} as {} with {who}", hello.operation, hello.role);
    let padded = |announced: Announced| if announced.padded { " (padded)" } else { "" };
    let (n, m) = (ours.size, theirs.size);
    let _ = writeln!(text, "  {n} items here{}, {m} on the peer's side{}", padded(*ours), padded(theirs));
    for sentence in would_learn(proposal) {
        let _ = writeln!(text, "  {sentence}");
    }
    let _ = writeln!(text, "  agreed:");
    // The first two terms are printed above. A value of 0 does not apply or was not requested.
    for Term { words, value, .. } in proposal.terms().into_iter().skip(2).filter(|term| term.value != "0") {
        let _ = writeln!(text, "    {words}: {value}");
    }
    let _ = writeln!(text, "  about {sent} bytes to the peer, {received} from it");
    let _ = writeln!(
        text,
        "  {rounds} rounds of messages, and at most {} of memory here in addition to the set",
        megabytes(memory)
    );
    let _ = writeln!(
        text,
        "  about {} of computing here and {} on the peer's side, in parallel: expect {}",
        seconds(our_milliseconds),
        seconds(their_milliseconds),
        seconds(our_milliseconds.max(their_milliseconds))
    );
    let on = LINKS.map(|link| format!("{} at {link} Mbit/s", seconds(estimate.larger() * 8 / (link * 1000))));
    let _ = write!(text, "  the transfer takes {}; the run takes the longer of the two times", on.join(", "));
    text
}

/// Rounded up.
fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes.div_ceil(1_000_000))
}

/// At least 0.1 seconds, so that it never prints 0.0.
fn seconds(milliseconds: u64) -> String {
    match milliseconds.max(100) {
        milliseconds @ 0..10_000 => format!("{:.1} seconds", milliseconds as f64 / 1000.0),
        _ => format!("{} seconds", milliseconds.div_ceil(1000)),
    }
}
