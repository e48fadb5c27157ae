//! `veilset plan`: the predicted cost of each protocol, and the protocol that would be chosen.

use crate::args::PlanArgs;
use crate::party::printer;
use crate::print;
use serde_json::{Value, json};
use veilset::channel::Network;
use veilset::error::{Error, Result};
use veilset::operations::{Announced, Role, View};
use veilset::planner::{self, Prediction, Preference, Prices, Setting, Wanted};
use veilset::protocols::{self, Choice};
use veilset::spelling::{ASSUME, GROUP, PARTIES, to_type};
use veilset_app::plan::threads;
use veilset_app::speeds::speeds;

/// Prints the candidates, the best first.
pub fn run(a: &PlanArgs) -> Result<()> {
    let threads = threads(a.threads);
    if let Some(path) = a.speeds.as_deref().filter(|path| !path.exists()) {
        return Err(Error::usage(format!(
            "{}: there is no such file of speeds. {} makes it",
            path.display(),
            to_type(format_args!("calibrate --speeds {}", path.display())),
        )));
    }
    let ours = speeds(a.speeds.as_deref(), threads, &mut printer(a.json));
    let link = a.net.link.unwrap_or(Network::NONE);
    let prices = Prices { hour: a.dollars_per_hour, gigabyte: a.dollars_per_gigabyte };
    let setting = Setting { speeds: [ours; 2], link, prices, shared: a.shared_cores.map(usize::from) };
    let padded = |size: usize| Announced { size, padded: false };
    let sizes = match a.role {
        Role::Receiver => [a.n, a.n_peer()],
        Role::Sender => [a.n_peer(), a.n],
    };
    let terms = a.terms();
    let assume = (!a.assume.is_empty()).then_some(&a.assume[..]);
    let wanted = Wanted { operation: a.op, terms, group: a.group, assume, sizes: sizes.map(padded) };
    let ranked = candidates(a, &wanted, &setting)?;
    let choices = ranked.iter().map(|(choice, _)| *choice).collect();
    let picked = planner::unasked(choices, a.op, &terms);
    let may = |choice: &Choice| picked.contains(choice);
    let among: Vec<_> = ranked.iter().filter(|(choice, _)| may(choice)).copied().collect();
    let Some((best, _)) = planner::best(&among, a.op, a.prefer) else {
        return Err(Error::usage(format!(
            "no protocol that is allowed computes {} of these sizes. Use smaller ones, or relax {ASSUME}, {GROUP} or the terms",
            a.op
        )));
    };
    let why = reason(&among, best, a.prefer);
    if a.json {
        let candidates: Vec<Value> =
            ranked.iter().map(|(choice, run)| as_json(&wanted, *choice, run, may(choice))).collect();
        return print(json!({
            "op": a.op.name,
            "n_receiver": sizes[0],
            "n_sender": sizes[1],
            "parties": a.parties.map_or(2, usize::from),
            "shards": terms.shards,
            "net": a.net.typed,
            "threads": threads,
            "prefer": a.prefer.name(),
            "chosen": best.to_string(),
            "why": why,
            "receiver_learns": learned(&wanted, Role::Receiver),
            "sender_learns": learned(&wanted, Role::Sender),
            "candidates": candidates,
        }));
    }
    let of = match a.parties {
        Some(parties) => format!("{parties} parties with {} items each", a.n),
        None => format!("{} and {} items (receiver, sender)", sizes[0], sizes[1]),
    };
    let cut = if terms.shards > 0 { format!(" in {} shards", terms.shards) } else { String::new() };
    let s = if threads == 1 { "" } else { "s" };
    print(format!("{} of {of}{cut}, {threads} thread{s} each, network {}", a.op, a.net.typed))?;
    print(format!(
        "{:26} {:>9} {:>10} {:>7} {:>16} {:>10}  rests on",
        "", "seconds", "MB", "rounds", "MB held", "dollars"
    ))?;
    for (choice, run) in &ranked {
        let on_request = if may(choice) { "" } else { " (on request)" };
        print(format!("{}{on_request}", line(&wanted, *choice, run)))?;
    }
    print(format!("chosen: {best}, {why}"))?;
    let roles = if a.parties.is_some() { ["leader", "other parties"] } else { Role::ALL.map(Role::name) };
    for (who, role) in roles.into_iter().zip(Role::ALL) {
        let learn = if role == Role::Sender && a.parties.is_some() { "learn" } else { "learns" };
        print(format!("the {who} {learn} {}", learned(&wanted, role)))?;
    }
    let terms = &wanted.terms;
    if let Some(offer) = best.protocol.offer(a.op) {
        Role::ALL.into_iter().try_for_each(|role| print(offer.deviating(terms, role)))?;
    }
    for sentence in best.protocol.assumes(a.op, terms, best.group) {
        print(format!("  it assumes: {sentence}"))?;
    }
    Ok(())
}

/// Returns the choices that can compute the operation, the best first.
fn candidates(a: &PlanArgs, wanted: &Wanted, setting: &Setting) -> Result<Vec<(Choice, Prediction)>> {
    let Some(parties) = a.parties else {
        let all = wanted.acceptable();
        if all.is_empty() {
            let whatever = Wanted { assume: None, ..*wanted };
            return Err(planner::nothing(&whatever.acceptable(), a.op, wanted.assume));
        }
        return Ok(wanted.ranked(&all, setting, a.prefer));
    };
    let Some(protocol) = protocols::multiparty_for(a.op) else {
        return Err(Error::usage(format!("{} is for two parties only. Omit {PARTIES}", a.op)));
    };
    let choice = Choice::of(protocol);
    if choice.beyond(a.op, wanted.assume).is_some() {
        return Err(planner::nothing(&[choice], a.op, wanted.assume));
    }
    let cost = protocol.multiparty_cost(&wanted.terms, &vec![a.n; usize::from(parties)])?;
    Ok(vec![(choice, Prediction::of_several(&cost, setting))])
}

fn line(wanted: &Wanted, choice: Choice, run: &Prediction) -> String {
    let moved = (run.traffic.to_sender + run.traffic.to_receiver) as f64 / 1e6;
    let [receiver, sender] = run.memory.map(|bytes| bytes.div_ceil(1_000_000));
    let rests: Vec<&str> = choice.rests_on(wanted.operation).iter().map(|a| a.name()).collect();
    format!(
        "{:26} {:>9} {:>10} {:>7} {:>16} {:>10}  {}",
        choice.to_string(),
        digits(run.seconds),
        digits(moved),
        run.rounds,
        format!("{receiver}, {sender}"),
        digits(run.dollars),
        rests.join(", ")
    )
}

/// Formats a number with about three significant digits.
fn digits(number: f64) -> String {
    match number {
        100.0.. => format!("{number:.0}"),
        10.0.. => format!("{number:.1}"),
        0.1.. => format!("{number:.2}"),
        _ => format!("{number:.5}"),
    }
}

fn as_json(wanted: &Wanted, choice: Choice, run: &Prediction, may_be_picked: bool) -> Value {
    let rests = choice.rests_on(wanted.operation);
    let malicious = wanted.terms.malicious_sender;
    let deviating =
        |role| choice.protocol.offer(wanted.operation).map(|offer| offer.deviating(&wanted.terms, role));
    json!({
        "protocol": choice.protocol.name,
        "group": choice.group,
        "may_be_picked": may_be_picked,
        "seconds": run.seconds,
        "bytes_to_sender": run.traffic.to_sender,
        "bytes_to_receiver": run.traffic.to_receiver,
        "rounds": run.rounds,
        "memory_receiver": run.memory[0],
        "memory_sender": run.memory[1],
        "dollars": run.dollars,
        "rests_on": rests.iter().map(|a| a.name()).collect::<Vec<_>>(),
        "assumptions": choice.protocol.assumes(wanted.operation, &wanted.terms, choice.group),
        "deviating_receiver": deviating(Role::Receiver),
        "deviating_sender": deviating(Role::Sender),
        "security": if malicious { "malicious sender" } else { "semi-honest" },
    })
}

/// Explains why `chosen` is picked from `among`, the permitted choices with the best first.
fn reason(among: &[(Choice, Prediction)], chosen: Choice, prefer: Preference) -> String {
    let what = match prefer {
        Preference::Time => "the fastest",
        Preference::Bytes => "which sends the least",
        Preference::Dollars => "the cheapest",
    };
    match among {
        [_] | [] => "the only one that is acceptable".into(),
        [(first, best), (second, other), ..] if *first == chosen => {
            format!("{what}: {second} takes {:.2} times as much", other.by(prefer) / best.by(prefer))
        }
        _ => "which shows least to a peer that deviates, of those that take under a second or as long as the fastest".into(),
    }
}

fn learned(wanted: &Wanted, role: Role) -> String {
    let several = wanted.terms.several;
    let other = if several { "the others" } else { "the other" };
    let view = View { other, several, other_pads: None, columns: "", numbers: None };
    view.say(&(wanted.operation.learns)(role, &wanted.terms))
}
