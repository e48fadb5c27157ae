//! `veilset check`: the run that would take place, its cost, and what each side would learn.

use crate::plan::PartyPlan;
use std::fmt::Write as _;
use veilset::governance::gate::learner;
use veilset::net::{Me, Member};
use veilset::operations::{Announced, Role};
use veilset::params::SMALL_SET;
use veilset::session::estimate::{Estimate, would_learn};
use veilset::session::run::Checked;
use veilset::session::{Proposal, Term};
use veilset::spelling::{ALLOW_SMALL, CHECKED};

/// Links for which the transfer time is printed, in megabits per second.
const LINKS: [u64; 2] = [10, 1000];

/// Terms that have the same value in every run of two without a list.
const FIXED_FOR_TWO: [&str; 1] = ["parties"];
/// Terms that have the same value in every run of several.
const FIXED_FOR_SEVERAL: [&str; 4] = ["output", "sent_columns", "malicious_sender", "reveal_count_to_sender"];

/// Returns the agreement in words.
pub fn text(checked: &Checked, estimate: &Estimate, plan: &PartyPlan) -> String {
    let listed = plan.party.spec.parties.as_ref();
    let me = listed.filter(|_| plan.party.spec.several());
    let Checked { proposal, their_milliseconds, .. } = checked;
    let Estimate { sent, received, rounds, memory, work, .. } = *estimate;
    let our_milliseconds = work.as_millis() as u64;
    // In a run of several parties, the slowest of the others.
    let theirs = their_milliseconds.iter().copied().max().unwrap_or_default();
    let mut text = match me {
        None => with_peer(proposal),
        Some(me) => with_parties(proposal, me),
    };
    // Writing to a string cannot fail.
    for sentence in would_learn(proposal) {
        let _ = writeln!(text, "  {sentence}");
    }
    let _ = writeln!(text, "  agreed:");
    let fixed: &[&str] = match (me, listed) {
        (Some(_), _) => &FIXED_FOR_SEVERAL,
        (None, Some(_)) => &[],
        (None, None) => &FIXED_FOR_TWO,
    };
    // The first two terms are printed above. A value of 0 does not apply or was not requested.
    let shown = |term: &Term| term.value != "0" && !fixed.contains(&term.key);
    for Term { words, value, .. } in proposal.terms().into_iter().skip(2).filter(shown) {
        let _ = writeln!(text, "    {words}: {value}");
    }
    let _ = match &proposal.why {
        Some(why) => writeln!(
            text,
            "  {} was picked: {why}\n  a run picks again, and may pick another{}",
            proposal.choice,
            held(plan)
        ),
        None if proposal.hello.spec.candidates.others.is_empty() => {
            writeln!(text, "  {} is fixed: our side allows nothing else", proposal.choice)
        }
        None => writeln!(
            text,
            "  both sides allow only {} now; if the other side allows more later, a run may pick another{}",
            proposal.choice,
            held(plan)
        ),
    };
    let Proposal { hello, choice, .. } = proposal;
    let rests = choice.rests_on(hello.spec.operation);
    let _ = writeln!(
        text,
        "  {choice} rests on {}",
        rests.iter().map(|one| one.name()).collect::<Vec<_>>().join(", ")
    );
    // How the others could deviate.
    let roles: &[Role] = match me {
        Some(me) if !me.leads() => &Role::ALL,
        _ => &[hello.spec.role.other()],
    };
    for role in roles {
        if let Some(offer) = choice.protocol.offer(hello.spec.operation) {
            let _ = writeln!(text, "  {}", offer.deviating(&hello.spec.terms, *role));
        }
    }
    if let Some(learner) = learner(proposal) {
        let (least, then) = match plan.policy.min_peer_size(learner.seat) {
            Some(least) => (least, "refused by the policy".into()),
            None if plan.allow_small => (SMALL_SET, format!("accepted ({ALLOW_SMALL})")),
            None => {
                (SMALL_SET, format!("refused, unless the policy has another bound or {ALLOW_SMALL} is given"))
            }
        };
        let seat = learner.seat;
        let _ = writeln!(
            text,
            "  {seat} learns something about our rows: if it has fewer than {least} items, the run is {then}"
        );
    }
    let (to, from, side) = match me {
        None => ("the peer", "it", "on the peer's side"),
        Some(_) => ("the other parties", "them", "for the slowest of them"),
    };
    let _ = writeln!(text, "  about {sent} bytes to {to}, {received} from {from}");
    let _ = writeln!(
        text,
        "  {rounds} rounds of messages, and at most {} of memory here in addition to the set",
        megabytes(memory)
    );
    let _ = writeln!(
        text,
        "  about {} of computing here and {} {side}, in parallel: expect {}",
        seconds(our_milliseconds),
        seconds(theirs),
        seconds(our_milliseconds.max(theirs))
    );
    let on = LINKS.map(|link| format!("{} at {link} Mbit/s", seconds(estimate.larger() * 8 / (link * 1000))));
    let _ = write!(text, "  the transfer takes {}; the run takes the longer of the two times", on.join(", "));
    if let Some(path) = &plan.checked {
        let path = path.display();
        let _ = write!(
            text,
            "\n  this check is kept in {path}: with {}, a run is held to it",
            CHECKED.with(&path)
        );
    }
    text
}

/// Describes the parties of a run of two, with their numbers of items.
fn with_peer(proposal: &Proposal) -> String {
    let Proposal { hello, ours, .. } = proposal;
    let peer = proposal.parties.peer();
    let who = match (&peer.name, peer.fingerprint) {
        (Some(name), Some(fingerprint)) => format!("{name} ({fingerprint})"),
        (_, Some(fingerprint)) => fingerprint.to_string(),
        _ => "a peer that is not authenticated, without TLS".into(),
    };
    let theirs = peer.announced;
    format!(
        "check: both sides ask for the same thing and allow it; nothing was computed\n  {} as {} with {who}\n  \
         {} items here{}, {} on the peer's side{}\n",
        hello.spec.operation,
        hello.spec.role,
        ours.size,
        padded(*ours),
        theirs.size,
        padded(theirs)
    )
}

/// Describes the parties of a run of several, with their numbers of items.
fn with_parties(proposal: &Proposal, me: &Me) -> String {
    let Proposal { hello, ours, parties, .. } = proposal;
    let members = me.roster().members();
    let mut text = format!(
        "check: all {} parties ask for the same thing and allow it; nothing was computed\n  {}, with {} as the \
         leader\n",
        members.len(),
        hello.spec.operation,
        members.first().map(Member::to_string).unwrap_or_default()
    );
    for member in members {
        let other = parties.iter().find(|party| party.seat == member.seat());
        let (announced, here) = other.map_or((*ours, " here"), |party| (party.announced, ""));
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  {member}, {}: {} items{here}{}",
            member.fingerprint(),
            announced.size,
            padded(announced)
        );
    }
    text
}

/// Returns the note on how a run can be held to the check.
fn held(plan: &PartyPlan) -> String {
    if plan.checked.is_some() {
        " unless it is held to this check".into()
    } else {
        format!(": {CHECKED} holds it to a check")
    }
}

fn padded(announced: Announced) -> &'static str {
    if announced.padded { " (padded)" } else { "" }
}

/// Formats a size in megabytes, rounded up.
fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes.div_ceil(1_000_000))
}

/// Formats a time in seconds: at least 0.1, so that it never prints 0.0.
fn seconds(milliseconds: u64) -> String {
    match milliseconds.max(100) {
        milliseconds @ 0..10_000 => format!("{:.1} seconds", milliseconds as f64 / 1000.0),
        _ => format!("{} seconds", milliseconds.div_ceil(1000)),
    }
}
