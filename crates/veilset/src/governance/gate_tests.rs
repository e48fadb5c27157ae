use super::super::audit;
use super::super::policy::Rules;
use super::*;
use crate::governance::review::{Columns, Review};
use crate::item::ItemSet;
use crate::operations::{COUNT, INTERSECT, Role, SUM, Terms, UNION};
use crate::protocols::{Assumption, CWPRF, Choice, DC17, DH_PSI, VOLE};
use crate::session::{Hello, Parties, Party};
use crate::testing::{self, hello, party};
use crate::threads::Threads;
use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Barrier;
use std::thread;

pub(super) fn peer() -> Fingerprint {
    Fingerprint::of_public_key(b"peer")
}

fn policy(repeats: Repeats) -> Policy {
    let rules = Rules { repeats: Some(repeats), ..Rules::default() };
    Policy::new(rules, "p.toml", &[(Seat::PEER, Some(peer()))], &|_| None).unwrap()
}

/// The other party of a run of two, with a set of 50 items.
fn who_is(fingerprint: Option<Fingerprint>) -> Party {
    Party { fingerprint, ..testing::peer(50, false) }
}

fn proposal(session: u8, our_size: usize) -> Proposal {
    let session_id = SessionId::of([session; 32]);
    let hello = hello(&COUNT, Role::Receiver);
    Proposal { session_id, ..testing::proposal(hello, our_size, who_is(Some(peer()))) }
}

/// Our side: an identity, a log, and the warnings it received.
struct Side {
    identity: Identity,
    folder: tempfile::TempDir,
    warned: RefCell<Vec<String>>,
}

impl Side {
    fn new() -> Side {
        let identity = Identity::generate().unwrap();
        Side { identity, folder: tempfile::tempdir().unwrap(), warned: RefCell::default() }
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// The events in the log.
    fn events(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.log()).unwrap_or_default();
        let entry = |line| serde_json::from_str::<serde_json::Value>(line).unwrap();
        log.lines().map(|line| entry(line)["event"].as_str().unwrap().to_string()).collect()
    }

    /// Calls `f` with a gate for a set of these items and a proposal.
    fn with<T>(&self, items: &[&str], repeats: Repeats, f: impl FnOnce(&mut Gate<'_>, Proposal) -> T) -> T {
        let set: ItemSet = items.iter().collect();
        let request = Request::new(&COUNT, Role::Receiver, &set);
        let policy = policy(repeats);
        let warn = |text: &str| self.warned.borrow_mut().push(text.into());
        let log = self.log();
        let setup =
            Setup { audit_log: Some(&log), identity: Some(&self.identity), ..Setup::new(&policy, &warn) };
        let mut gate = Gate::new(&request, setup).unwrap();
        f(&mut gate, proposal(7, set.len()))
    }

    /// A whole run.
    fn run(&self, items: &[&str], repeats: Repeats) -> Result<()> {
        self.with(items, repeats, |gate, proposal| {
            gate.approve(&proposal)?;
            gate.begins(&proposal)?;
            gate.end(Err(&Error::Cancelled), 0.5)
        })
    }
}

fn is_refused(result: Result<()>) -> bool {
    match result {
        Ok(()) => false,
        Err(Error::Refused(text)) => text.contains("by \"repeats\""),
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn what_needs_no_peer_is_refused_before_the_log_is_touched() {
    let side = Side::new();
    let set: ItemSet = ["a", "b"].iter().collect();
    let columns = ["city".to_string()];
    let count = Request::new(&COUNT, Role::Receiver, &set);
    let sends = Request::new(&INTERSECT, Role::Sender, &set).with(|r| r.spec.sent_columns = columns.to_vec());
    let gets = sends.with(|r| r.spec.role = Role::Receiver);
    let cases = [
        (Rules { min_our_size: Some(3), ..Rules::default() }, count.clone(), "min-our-size"),
        (Rules { operations: Some(vec![&SUM]), ..Rules::default() }, count.clone(), "operations"),
        (Rules { roles: Some(vec![Role::Sender]), ..Rules::default() }, count.clone(), "roles"),
        (Rules { peers: Some(vec![]), ..Rules::default() }, count.clone(), "peers"),
        (Rules { allowed_send_columns: Some(vec![]), ..Rules::default() }, sends, "allowed-send-columns"),
        (Rules { allowed_send_columns: Some(vec![]), ..Rules::default() }, gets, ""),
    ];
    let log = side.log();
    for (rules, request, key) in cases {
        let policy = Policy::new(rules, "p.toml", &[(Seat::PEER, Some(peer()))], &|_| None).unwrap();
        let gate = Gate::new(&request, Setup { audit_log: Some(&log), ..Setup::new(&policy, &|_| ()) });
        match gate {
            Ok(_) => assert_eq!(key, ""),
            Err(e) => assert!(!key.is_empty() && e.to_string().contains(&format!("by \"{key}\"")), "{e}"),
        }
        assert_eq!(log.exists(), key.is_empty());
    }
    // Without a log, repeated runs would go unnoticed.
    let policy = policy(Repeats::Refuse);
    assert!(is_refused(Gate::new(&count, Setup::new(&policy, &|_| ())).map(drop)));
}

#[test]
fn the_log_says_what_became_of_a_run() {
    let side = Side::new();
    // Our side allowed the run but the peer did not.
    side.with(&["a"], Repeats::Warn, |gate, proposal| {
        gate.approve(&proposal).unwrap();
        gate.end(Err(&Error::Cancelled), 0.5).unwrap();
    });
    side.with(&["a"], Repeats::Warn, |gate, mut proposal| {
        proposal.hello.check = true;
        gate.approve(&proposal).unwrap();
        gate.end(Err(&Error::Cancelled), 0.5).unwrap();
    });
    side.run(&["a"], Repeats::Warn).unwrap();
    assert!(is_refused(side.run(&["b"], Repeats::Refuse)));
    assert_eq!(side.events(), ["declined", "check", "start", "end", "refused"]);
    let text = std::fs::read_to_string(side.log()).unwrap();
    assert!(text.contains(r#""outcome":"cancelled""#) && text.contains(r#""min_count":"0""#), "{text}");
}

#[test]
fn the_log_says_whether_the_peer_broke_the_protocol_or_gave_up() {
    let side = Side::new();
    let ends = [
        (Error::misbehaves("it lied"), r#""outcome":"peer","fault":"misbehaved""#),
        (Error::misbehaves_unseen("it lied"), r#""outcome":"peer","fault":"misbehaved""#),
        (Error::gave_up(None, "it stopped"), r#""outcome":"peer","fault":"gave-up""#),
        (Error::Network("gone".into()), r#""outcome":"network","result""#),
    ];
    for (error, says) in ends {
        side.with(&["a"], Repeats::Allow, |gate, proposal| {
            gate.approve(&proposal).unwrap();
            gate.begins(&proposal).unwrap();
            gate.end(Err(&error), 0.5).unwrap();
        });
        let text = std::fs::read_to_string(side.log()).unwrap();
        let last = text.lines().last().unwrap();
        assert!(last.contains(says), "{last}");
        assert!(matches!(serde_json::from_str(last).unwrap(), Entry { event: Event::End(_), .. }));
    }
}

#[test]
fn a_change_is_warned_of_once_and_refused_as_long_as_it_is_new() {
    let side = Side::new();
    for (set, warnings) in [("a", 0), ("b", 1), ("b", 1), ("a", 1), ("c", 2), ("c", 2)] {
        side.run(&[set], Repeats::Warn).unwrap();
        assert_eq!(side.warned.borrow().len(), warnings, "{set}: {:?}", side.warned);
    }
    for _ in 0..2 {
        assert!(is_refused(side.run(&["d"], Repeats::Refuse)));
        assert!(!is_refused(side.run(&["a"], Repeats::Refuse)));
    }
    assert!(!is_refused(side.run(&["d"], Repeats::Allow)));
    assert_eq!(side.warned.borrow().len(), 2);
}

#[test]
fn of_two_runs_that_start_together_one_is_refused() {
    let side = Side::new();
    // Both were allowed before either started.
    side.with(&["a"], Repeats::Refuse, |one, proposal| {
        one.approve(&proposal).unwrap();
        side.with(&["b"], Repeats::Refuse, |two, proposal| {
            two.approve(&proposal).unwrap();
            one.begins(&proposal).unwrap();
            assert!(is_refused(two.begins(&proposal)));
            two.end(Err(&Error::Cancelled), 0.5).unwrap();
        });
    });
    assert_eq!(side.events(), ["start", "refused"]);
    // Any number of runs with the same set is allowed.
    let side = Side::new();
    side.with(&["a"], Repeats::Refuse, |one, proposal| {
        one.approve(&proposal).unwrap();
        side.run(&["a"], Repeats::Refuse).unwrap();
        one.begins(&proposal).unwrap();
    });
}

#[test]
fn of_runs_that_start_at_the_same_time_one_starts() {
    const RUNS: usize = 4;
    let identity = Identity::generate().unwrap();
    let folder = tempfile::tempdir().unwrap();
    for round in 0..20 {
        let (log, barrier) = (folder.path().join(format!("{round}")), Barrier::new(RUNS));
        let started = thread::scope(|scope| {
            let runs: Vec<_> = (0..RUNS)
                .map(|i| {
                    let (log, barrier, identity) = (&log, &barrier, &identity);
                    scope.spawn(move || {
                        let set: ItemSet = [format!("{i}")].iter().collect();
                        let request = Request::new(&COUNT, Role::Receiver, &set);
                        let policy = policy(Repeats::Refuse);
                        let setup = Setup {
                            audit_log: Some(log),
                            identity: Some(identity),
                            ..Setup::new(&policy, &|_| ())
                        };
                        let mut gate = Gate::new(&request, setup).unwrap();
                        let proposal = proposal(i as u8, 1);
                        gate.approve(&proposal).unwrap();
                        barrier.wait();
                        !is_refused(gate.begins(&proposal))
                    })
                })
                .collect();
            runs.into_iter().map(|run| usize::from(run.join().unwrap())).sum::<usize>()
        });
        assert_eq!(started, 1);
        // The others were refused on our side.
        let log = std::fs::read_to_string(&log).unwrap();
        assert_eq!(log.matches(r#""event":"refused""#).count(), RUNS - 1, "{log}");
        assert_eq!(log.lines().count(), RUNS);
    }
}

#[test]
fn a_policy_for_somebody_else_lets_nobody_in() {
    let side = Side::new();
    let set: ItemSet = ["a"].iter().collect();
    let request = Request::new(&COUNT, Role::Receiver, &set);
    let log = side.log();
    let approve = |policy: &Policy, peer| {
        let setup = Setup { audit_log: Some(&log), ..Setup::new(policy, &|_| ()) };
        Gate::new(&request, setup)
            .unwrap()
            .approve(&Proposal { parties: who_is(peer).into(), ..proposal(7, 1) })
    };
    let rules = policy(Repeats::Warn);
    for other in [None, Some(Fingerprint::of_public_key(b"other"))] {
        assert!(matches!(approve(&rules, other), Err(Error::Usage(_))));
        approve(&Policy::none(), other).unwrap();
    }
    approve(&rules, Some(peer())).unwrap();
    assert_eq!(side.events(), ["refused", "refused"]);
}

#[test]
fn the_digest_in_the_log_is_that_of_our_identity() {
    let side = Side::new();
    side.run(&["a"], Repeats::Warn).unwrap();
    let set: ItemSet = ["a"].iter().collect();
    let ours = audit::digest(&side.identity, (&set).into(), &[], Threads::global()).unwrap();
    let others =
        audit::digest(&Identity::generate().unwrap(), (&set).into(), &[], Threads::global()).unwrap();
    let log = std::fs::read_to_string(side.log()).unwrap();
    assert!(log.contains(&ours) && !log.contains(&others), "{log}");
}

#[test]
fn without_a_lock_no_start_is_safe_from_another_one() {
    let side = Side::new();
    for (repeats, refused) in [(Repeats::Refuse, true), (Repeats::Warn, false), (Repeats::Allow, false)] {
        side.with(&["a"], repeats, |gate, proposal| {
            let (run, log) = (gate.run(&proposal), gate.log.as_ref().unwrap());
            let look = gate.second_look(log, &run, Some(&io::Error::other("no locks available")));
            assert_eq!(is_refused(look), refused);
            gate.second_look(log, &run, None).unwrap();
        });
    }
}

#[test]
fn a_run_that_ends_before_we_are_asked_is_logged() {
    let side = Side::new();
    side.with(&["a"], Repeats::Warn, |gate, proposal| {
        for error in [Error::Refused("too large".into()), Error::Network("gone".into())] {
            gate.refused(&proposal, &error);
            gate.end(Err(&error), 0.5).unwrap();
        }
    });
    assert_eq!(side.events(), ["refused", "declined"]);
}

#[test]
fn a_run_of_several_is_judged_logged_and_remembered_with_all_of_them() {
    let side = Side::new();
    let set: ItemSet = ["a"].iter().collect();
    let request = Request::new(&COUNT, Role::Receiver, &set);
    let (log, warned) = (side.log(), RefCell::<Vec<String>>::default());
    let warn = |text: &str| warned.borrow_mut().push(text.into());
    let several = |sizes: &[(u8, usize)]| -> Parties {
        let names = ["", "", "south", "west"];
        let all = sizes.iter().map(|&(n, size)| party(n, names[usize::from(n)], size));
        Parties::of(all).unwrap()
    };
    let run = |parties: Parties, end: &Error| {
        let who: Vec<_> = parties.iter().map(|party| (party.seat, party.fingerprint)).collect();
        let policy = Policy::new(Rules::default(), "p.toml", &who, &|_| None).unwrap();
        let setup =
            Setup { audit_log: Some(&log), identity: Some(&side.identity), ..Setup::new(&policy, &warn) };
        let mut gate = Gate::new(&request, setup).unwrap();
        let proposal = Proposal { parties, ..proposal(7, 1) };
        gate.approve(&proposal).unwrap();
        gate.begins(&proposal).unwrap();
        gate.end(Err(end), 0.5).unwrap();
    };
    let three = || several(&[(2, 5), (3, 6)]);
    run(three(), &Error::gave_up(None, "it stopped").by(three().iter().last().unwrap().seat));
    let text = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let south = Fingerprint::of_public_key(b"south").to_string();
    assert_eq!(
        lines[0]["parties"][0],
        serde_json::json!({"party": 2, "peer": south, "peer_name": "south", "peer_items": 5})
    );
    assert_eq!((&lines[1]["fault"], &lines[1]["party"]), (&"gave-up".into(), &3.into()));
    // A repetition is not new. A different size or list is.
    run(three(), &Error::Cancelled);
    assert_eq!(warned.borrow().len(), 0, "{warned:?}");
    run(several(&[(2, 5), (3, 7)]), &Error::Cancelled);
    run(several(&[(2, 5)]), &Error::Cancelled);
    let warned = warned.borrow();
    assert!(warned[0].contains("run 3 with one of south, west, and party 3's set has changed in size"));
    assert!(warned[1].contains("run 4 with south, and the parties have changed") && warned.len() == 2);
    // A policy that lacks one party is for a different run.
    let policy = Policy::new(
        Rules { both: Some(false), ..Rules::default() },
        "p.toml",
        &[(three().peer().seat, three().peer().fingerprint)],
        &|_| None,
    );
    let policy = policy.unwrap();
    let mut gate = Gate::new(&request, Setup::new(&policy, &warn)).unwrap();
    let refused = gate.approve(&Proposal { parties: three(), ..proposal(7, 1) });
    assert!(matches!(refused, Err(Error::Usage(_))), "{refused:?}");
}

#[test]
fn what_was_agreed_is_held_against_the_policy() {
    let side = Side::new();
    let set: ItemSet = ["a"].iter().collect();
    let request = Request::new(&INTERSECT, Role::Sender, &set);
    let rules =
        Rules { both: Some(false), allowed_send_columns: Some(vec!["city".into()]), ..Rules::default() };
    let policy = Policy::new(rules, "p.toml", &[(Seat::PEER, Some(peer()))], &|_| None).unwrap();
    let log = side.log();
    let setup = Setup { audit_log: Some(&log), ..Setup::new(&policy, &|_| ()) };
    let approve = |change: fn(&mut Hello)| {
        let mut proposal = proposal(7, 1);
        (proposal.hello.spec.operation, proposal.hello.spec.role) = (&INTERSECT, Role::Sender);
        change(&mut proposal.hello);
        Gate::new(&request, setup).unwrap().approve(&proposal)
    };
    approve(|hello| hello.spec.sent_columns = vec!["city".into()]).unwrap();
    let columns = approve(|hello| hello.spec.sent_columns = vec!["name".into()]);
    assert!(matches!(columns, Err(Error::Refused(text)) if text.contains("allowed-send-columns")));
    let both = approve(|hello| hello.spec.terms.both = true);
    assert!(matches!(both, Err(Error::Refused(text)) if text.contains("\"both\"")));
    assert!(matches!(approve(|hello| hello.spec.operation = &UNION), Err(Error::Bug(_))));
    assert!(matches!(approve(|hello| hello.spec.role = Role::Receiver), Err(Error::Bug(_))));
    assert_eq!(side.events(), ["refused"; 4]);
}

#[test]
fn the_peers_size_is_held_against_the_policy() {
    let side = Side::new();
    let set: ItemSet = ["a"].iter().collect();
    let request = Request::new(&COUNT, Role::Receiver, &set);
    let log = side.log();
    // The peer's set has 50 items.
    let limits = [
        (Rules { min_peer_size: Some(51), ..Rules::default() }, "\"min-peer-size\""),
        (Rules { max_peer_items: Some(49), ..Rules::default() }, "\"max-peer-items\""),
        (Rules { min_peer_size: Some(50), max_peer_items: Some(50), ..Rules::default() }, ""),
    ];
    for (rules, key) in limits {
        let policy = Policy::new(rules, "p.toml", &[(Seat::PEER, Some(peer()))], &|_| None).unwrap();
        let setup = Setup { audit_log: Some(&log), ..Setup::new(&policy, &|_| ()) };
        match Gate::new(&request, setup).unwrap().approve(&proposal(7, 1)) {
            Ok(()) => assert_eq!(key, ""),
            Err(Error::Refused(text)) => assert!(!key.is_empty() && text.contains(key), "{text}"),
            Err(e) => panic!("{e}"),
        }
    }
    assert_eq!(side.events(), ["refused"; 2]);
}

#[test]
fn other_values_of_a_sum_are_another_set() {
    let side = Side::new();
    let set: ItemSet = ["a", "b"].iter().collect();
    let (log, policy) = (side.log(), policy(Repeats::Refuse));
    let run = |values: &[i128]| {
        let request = Request::new(&SUM, Role::Sender, &set).with(|r| r.input.values = values);
        let setup =
            Setup { audit_log: Some(&log), identity: Some(&side.identity), ..Setup::new(&policy, &|_| ()) };
        let mut gate = Gate::new(&request, setup).unwrap();
        let mut proposal = proposal(7, 2);
        (proposal.hello.spec.operation, proposal.hello.spec.role) = (&SUM, Role::Sender);
        gate.approve(&proposal)?;
        gate.begins(&proposal)
    };
    for (values, refused) in [([1, 2], false), ([1, 2], false), ([1, 3], true), ([1, 2], false)] {
        assert_eq!(is_refused(run(&values)), refused, "{values:?}");
    }
}

#[test]
fn a_log_with_lines_that_are_none_may_hide_a_run() {
    let side = Side::new();
    std::fs::write(side.log(), "garbage\n").unwrap();
    side.with(&["a"], Repeats::Refuse, |gate, proposal| {
        let refused = gate.approve(&proposal);
        assert!(matches!(refused, Err(Error::Refused(text)) if text.contains("not entries (line 1)")));
    });
    side.with(&["a"], Repeats::Warn, |gate, proposal| gate.approve(&proposal).unwrap());
    assert!(
        side.warned.borrow().iter().any(|text| text.contains("not entries (line 1)")),
        "{:?}",
        side.warned
    );
}

#[test]
fn answers_to_filters_are_counted_by_peer_and_refused_beyond_the_limit() {
    let side = Side::new();
    let set: ItemSet = ["a"].iter().collect();
    let log = side.log();
    let other = Fingerprint::of_public_key(b"another");
    let warn = |text: &str| side.warned.borrow_mut().push(text.into());
    let go = |protocol, role, both, peer: Fingerprint, most: Option<u64>, logged: bool| {
        let rules = Rules { max_filter_runs: most, repeats: Some(Repeats::Allow), ..Rules::default() };
        let policy = Policy::new(rules, "p.toml", &[(Seat::PEER, Some(peer))], &|_| None).unwrap();
        let audit_log = logged.then_some(&*log);
        let setup = Setup { audit_log, identity: Some(&side.identity), ..Setup::new(&policy, &warn) };
        let mut gate = Gate::new(&Request::new(&COUNT, role, &set), setup)?;
        let mut hello = hello(&COUNT, role);
        hello.spec.terms.both = both;
        let proposal = testing::proposal(hello, 1, who_is(Some(peer)));
        let proposal = Proposal { choice: Choice::of(protocol), ..proposal };
        gate.approve(&proposal)?;
        gate.begins(&proposal)
    };
    let (sender, receiver) = (Role::Sender, Role::Receiver);
    // Without a limit, the runs are counted too; runs that do not count come in between.
    go(&DC17, sender, false, peer(), None, true).unwrap();
    go(&DC17, receiver, false, peer(), None, true).unwrap();
    go(&CWPRF, sender, false, peer(), None, true).unwrap();
    go(&DC17, sender, false, other, None, true).unwrap();
    go(&DC17, sender, false, peer(), Some(2), true).unwrap();
    let is_refused = |result: Result<()>| {
        result.is_err_and(|e| matches!(&e, Error::Refused(said) if said.contains("\"max-filter-runs\"")))
    };
    let said = go(&DC17, sender, false, peer(), Some(2), true).unwrap_err().to_string();
    assert!(said.contains("\"max-filter-runs\"") && said.contains("in 2 runs, and 2 are allowed"), "{said}");
    // The receiver answers only if both get the result.
    go(&DC17, receiver, false, peer(), Some(2), true).unwrap();
    assert!(is_refused(go(&DC17, receiver, true, peer(), Some(2), true)));
    go(&DC17, receiver, true, peer(), Some(3), true).unwrap();
    assert!(is_refused(go(&DC17, sender, false, peer(), Some(3), true)));
    // Other peers, other protocols.
    go(&DC17, sender, false, other, Some(2), true).unwrap();
    go(&CWPRF, sender, false, peer(), Some(0), true).unwrap();
    // Without a log, no runs are counted.
    assert!(is_refused(go(&DC17, sender, false, peer(), Some(100), false)));
    go(&DC17, sender, false, peer(), None, false).unwrap();
    // A run that started meanwhile is noticed before ours starts.
    let rules = Rules { max_filter_runs: Some(4), repeats: Some(Repeats::Allow), ..Rules::default() };
    let policy = Policy::new(rules, "p.toml", &[(Seat::PEER, Some(peer()))], &|_| None).unwrap();
    let setup = Setup { audit_log: Some(&log), identity: Some(&side.identity), ..Setup::new(&policy, &warn) };
    let mut gate = Gate::new(&Request::new(&COUNT, sender, &set), setup).unwrap();
    let proposal = testing::proposal(hello(&COUNT, sender), 1, who_is(Some(peer())));
    let proposal = Proposal { choice: Choice::of(&DC17), ..proposal };
    gate.approve(&proposal).unwrap();
    go(&DC17, sender, false, peer(), Some(4), true).unwrap();
    assert!(is_refused(gate.begins(&proposal)));
}

/// Where repetitions are allowed, only the limit itself can refuse.
#[test]
fn a_log_that_may_lack_a_run_does_not_count_answers_to_filters() {
    let side = Side::new();
    let set: ItemSet = ["a"].iter().collect();
    let request = Request::new(&COUNT, Role::Sender, &set);
    let path = side.log();
    let rules = Rules { max_filter_runs: Some(9), repeats: Some(Repeats::Allow), ..Rules::default() };
    let policy = Policy::new(rules, "p.toml", &[(Seat::PEER, Some(peer()))], &|_| None).unwrap();
    let setup =
        Setup { audit_log: Some(&path), identity: Some(&side.identity), ..Setup::new(&policy, &|_| ()) };
    let proposal = testing::proposal(hello(&COUNT, Role::Sender), 1, who_is(Some(peer())));
    let proposal = Proposal { choice: Choice::of(&DC17), ..proposal };
    let is_refused = |result: Result<()>, why: &str| match result {
        Err(Error::Refused(said)) => said.contains("by \"max-filter-runs\"") && said.contains(why),
        _ => false,
    };
    let mut gate = Gate::new(&request, setup).unwrap();
    gate.approve(&proposal).unwrap();
    let (run, log) = (gate.run(&proposal), gate.log.as_ref().unwrap());
    let look = gate.second_look(log, &run, Some(&io::Error::other("no locks available")));
    assert!(is_refused(look, "cannot be locked (no locks available)"));
    gate.second_look(log, &run, None).unwrap();
    // A line that may have been a run.
    std::fs::write(&path, "garbage\n").unwrap();
    let mut gate = Gate::new(&request, setup).unwrap();
    assert!(is_refused(gate.approve(&proposal), "not entries (line 1)"));
}

#[test]
fn a_job_that_goes_on_counts_with_its_start_and_only_if_the_log_has_that() {
    let side = Side::new();
    side.run(&["a"], Repeats::Warn).unwrap();
    let resumed = |items: &[&str], job: u8, repeats| {
        side.with(items, repeats, |gate, proposal| {
            let session_id = SessionId::of([99; 32]);
            let mut proposal = Proposal { session_id, ..proposal };
            proposal.hello.job = Some(SessionId::of([job; 32]));
            gate.approve(&proposal)?;
            gate.begins(&proposal)?;
            gate.end(Err(&Error::Cancelled), 0.5)
        })
    };
    // The set of a resumed job is compared with that of its start, not with that of any run since.
    side.run(&["b"], Repeats::Allow).unwrap();
    for _ in 0..3 {
        resumed(&["a"], 7, Repeats::Refuse).unwrap();
    }
    assert!(side.warned.borrow().is_empty());
    assert_eq!(side.events()[4..], ["resume", "end"].repeat(3));
    let text = std::fs::read_to_string(side.log()).unwrap();
    assert!(!text.contains(&"63".repeat(32)) && text.lines().all(|line| line.contains(&"07".repeat(32))));
    // Without its start, a resumed job is a run like any other.
    assert!(is_refused(resumed(&["c"], 8, Repeats::Refuse)));
    resumed(&["a"], 8, Repeats::Refuse).unwrap();
    assert_eq!(side.events()[10..], ["refused", "start", "end"]);
}

/// Each protocol that our side offers must be allowed by the policy, whichever party picks.
#[test]
fn no_candidate_rests_on_more_than_the_policy_allows() {
    let set: ItemSet = ["a", "b"].iter().collect();
    let rules = Rules { assumptions: Some(vec![Assumption::Ddh]), ..Rules::default() };
    let policy = Policy::new(rules, "p.toml", &[(Seat::PEER, Some(peer()))], &|_| None).unwrap();
    let warn = |_: &str| {};
    let others = [Choice::of(&VOLE)];
    let plain = Request::new(&INTERSECT, Role::Receiver, &set)
        .with(|r| r.spec.candidates = Choice::of(&DH_PSI).into());
    assert!(Gate::new(&plain, Setup::new(&policy, &warn)).is_ok());
    let Err(refused) =
        Gate::new(&plain.with(|r| r.spec.candidates.others = others.to_vec()), Setup::new(&policy, &warn))
    else {
        panic!("a candidate that the policy forbids was allowed");
    };
    assert!(refused.to_string().contains("\"assumptions\""), "{refused}");
}

/// The planner's early question is answered as the gate would answer it.
#[test]
fn whether_a_filter_may_be_answered_is_known_before_the_peer_is() {
    let side = Side::new();
    let set: ItemSet = ["a"].iter().collect();
    let (log, other) = (side.log(), Fingerprint::of_public_key(b"another"));
    let asked = |most: Option<u64>, path: Option<&Path>, peer| {
        let rules = Rules { max_filter_runs: most, repeats: Some(Repeats::Allow), ..Rules::default() };
        let policy = Policy::new(rules, "p.toml", &[(Seat::PEER, Some(peer))], &|_| None).unwrap();
        permits_filter(&policy, path, Some(peer)).map_err(|e| e.to_string())
    };
    let refused = |said: std::result::Result<(), String>, why: &str| {
        said.is_err_and(|said| said.contains("by \"max-filter-runs\"") && said.contains(why))
    };
    // No log yet.
    asked(Some(1), Some(&log), peer()).unwrap();
    assert!(refused(asked(Some(0), Some(&log), peer()), "in 0 runs, and 0 are allowed"));
    assert!(!log.exists(), "looking at it makes no log");
    assert!(refused(asked(Some(9), None, peer()), "nobody counts"));
    asked(None, None, peer()).unwrap();
    let proposal = testing::proposal(hello(&COUNT, Role::Sender), 1, who_is(Some(peer())));
    let proposal = Proposal { choice: Choice::of(&DC17), ..proposal };
    let policy = policy(Repeats::Allow);
    let setup = Setup { audit_log: Some(&log), ..Setup::new(&policy, &|_| ()) };
    let mut gate = Gate::new(&Request::new(&COUNT, Role::Sender, &set), setup).unwrap();
    gate.approve(&proposal).unwrap();
    gate.begins(&proposal).unwrap();
    assert!(refused(asked(Some(1), Some(&log), peer()), "in 1 runs, and 1 are allowed"));
    asked(Some(2), Some(&log), peer()).unwrap();
    asked(Some(1), Some(&log), other).unwrap();
    std::fs::write(&log, "garbage\n").unwrap();
    assert!(refused(asked(Some(2), Some(&log), peer()), "line 1"));
}

#[test]
fn the_log_has_what_was_allowed_and_by_whom() {
    let side = Side::new();
    let set: ItemSet = ["a"].iter().collect();
    let log = side.log();
    let request = Request::new(&COUNT, Role::Sender, &set);
    let policy = policy(Repeats::Allow);
    let setup = Setup { audit_log: Some(&log), allow_small: true, ..Setup::new(&policy, &|_| ()) };
    let start = |size: usize, setup: Setup<'_>, why: Option<&str>| {
        let mut hello = hello(&COUNT, Role::Sender);
        hello.spec.candidates =
            testing::choices(&[Choice::of(&CWPRF), Choice { protocol: &CWPRF, group: "p256" }]);
        let party = Party { fingerprint: Some(peer()), ..testing::peer(size, false) };
        let theirs = testing::choices(&[Choice::of(&DC17), Choice::of(&CWPRF)]);
        let proposal = Proposal { theirs, why: why.map(Into::into), ..testing::proposal(hello, 1, party) };
        let review = Review::of(None, Columns::default(), &proposal);
        let checked = setup.checked.map(|(_, name)| (&review, name));
        let mut gate = Gate::new(&request, Setup { checked, ..setup }).unwrap();
        gate.approve(&proposal).unwrap();
        gate.begins(&proposal).unwrap();
        let text = std::fs::read_to_string(&log).unwrap();
        serde_json::from_str::<serde_json::Value>(text.lines().last().unwrap()).unwrap()
    };
    let line = start(50, setup, None);
    assert_eq!(line["allowed"]["ours"], serde_json::json!([CWPRF.name, format!("{} over p256", CWPRF.name)]));
    assert_eq!(line["allowed"]["theirs"], serde_json::json!([DC17.name, CWPRF.name]));
    assert_eq!((line.get("why"), line.get("allow_small"), line.get("checked")), (None, None, None));
    let line = start(9, setup, Some("the best"));
    assert_eq!((&line["why"], &line["allow_small"]), (&"the best".into(), &true.into()));
    // If a rule decides, the option changes nothing; nor does it before a size is known.
    let rules = Rules { min_peer_size: Some(2), repeats: Some(Repeats::Allow), ..Rules::default() };
    let ruled = Policy::new(rules, "p.toml", &[(Seat::PEER, Some(peer()))], &|_| None).unwrap();
    let line = start(9, Setup { policy: &ruled, ..setup }, None);
    assert_eq!(line.get("allow_small"), None);
    let gone = testing::proposal(hello(&COUNT, Role::Sender), 1, testing::peer(0, false));
    let mut gate = Gate::new(&request, setup).unwrap();
    gate.refused(&gone, &Error::Network("it left".into()));
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(!text.lines().last().unwrap().contains("allow_small"), "{text}");
    let policy = Policy::none();
    let any = Review::of(None, Columns::default(), &proposal(7, 1));
    let line = start(50, Setup { checked: Some((&any, Path::new("c"))), policy: &policy, ..setup }, None);
    assert_eq!((line.get("allow_small"), &line["checked"]), (None, &true.into()));
}

/// A sum over a single match is a value of the sender, and tells it which item the receiver has. The receiver is warned, unless
/// a minimum is agreed or the policy sets one.
#[test]
fn the_receiver_of_a_sum_is_warned_of_a_sum_over_one_match() {
    let set: ItemSet = ["a"].iter().collect();
    let none = Rules::default;
    let least = |least| Rules { min_count: Some(least), ..Rules::default() };
    let cases = [
        (&SUM, Role::Receiver, 0, none(), true),
        (&SUM, Role::Receiver, 1, none(), true),
        (&SUM, Role::Receiver, 2, none(), false),
        // The author of the policy has considered it.
        (&SUM, Role::Receiver, 0, least(0), false),
        (&SUM, Role::Receiver, 1, least(1), false),
        // We learn the sum ourselves, or there is none.
        (&SUM, Role::Sender, 0, none(), false),
        (&COUNT, Role::Receiver, 0, none(), false),
    ];
    for (operation, role, min_count, rules, warned) in cases {
        let said = RefCell::<Vec<String>>::default();
        let warn = |text: &str| said.borrow_mut().push(text.into());
        let request = Request::new(operation, role, &set);
        let request = request.with(|r| r.spec.terms = Terms { min_count, ..request.spec.terms });
        let policy = Policy::new(rules, "p.toml", &[(Seat::PEER, None)], &|_| None).unwrap();
        Gate::new(&request, Setup::new(&policy, &warn)).unwrap();
        let said = said.borrow();
        assert_eq!(said.len(), usize::from(warned), "{operation} {role} {min_count}: {said:?}");
        let start = format!("`min_count` is {min_count}, so the peer learns the sum");
        assert!(said.iter().all(|text| crate::spelling::plain(text).starts_with(&start)), "{said:?}");
    }
}
