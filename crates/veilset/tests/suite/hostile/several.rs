//! A hostile party against whole runs of several. All other parties are scripts, their recordings in an honest run. One of
//! them, the cheat, has one frame tampered with. Our side must name the cheat whenever something is wrong.

use super::tamper::{Aborts, Act, Case, replay, tag, tamper};
use super::{
    EXCEPTIONS, End::*, Exception, HEADER, Kind, ONE_AT_A_TIME, drawn, each, ended, in_time, none, verdict,
};
use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use veilset::channel::Recording;
use veilset::error::{Error, Result, Seat};
use veilset::item::ItemSet;
use veilset::many::seat;
use veilset::net::{Connected, Fingerprint, Listed, ListedParty, Me, Roster, in_memory};
use veilset::operations::{INTERSECT, Learned, Role, Terms};
use veilset::protocols::{self, Choice, Protocol, groups};
use veilset::session::run::{Request, RunOutcome, run};
use veilset_core::hazmat;

/// The leader, and two others.
const PARTIES: usize = 3;

/// The cases in which a run of several may end differently, in addition to [`EXCEPTIONS`].
const MORE: &[Exception] = {
    use Kind::{Illegal, Value};
    const ANY: &[Kind] = &[Value, Illegal];
    const NOISE: &str = "every string is a ciphertext: what is not read, or masks what is, is not noticed";
    const ROW: &str = "two elements are a ciphertext, of whatever: who does not decrypt it does not notice";
    &[
        (0x37, ANY, &[Done], NOISE),
        (0xd0, &[Value], &[Done], ROW),
        (0xda, &[Value], &[Done], "another try is possible: nothing binds the owner to the truth"),
        (0xdb, &[Value], &[Done], ROW),
        (0xe0, ANY, &[Done], NOISE),
        (0xe1, ANY, &[Done], NOISE),
        (0xe2, ANY, &[Done], NOISE),
    ]
};

/// Messages from which rows of a union are made, or that select the rows to replace. They may decrypt to wrong values, and the
/// culprit cannot be determined: all rows pass all parties.
const BY_SOMEBODY: &[u16] = &[0xd0];

/// Messages of which the cheat has then sent different versions to the parties, and the hashes that show it. Any party may be
/// the liar, since one reports a different version from ours.
const SAID_TO_ALL: &[u16] = &[0x02, 0x03, 0x0b, 0xd9];

/// A fingerprint that belongs to no key, with the right check letters.
fn fingerprint(party: usize) -> Fingerprint {
    format!("{:0>40}", "zx".to_owned() + &"0".repeat(party + 1)).parse().unwrap()
}

/// The data that the requests of a run borrow: each party's list with its place in it, and its set.
struct Parties {
    mes: Vec<Me>,
    sets: Vec<ItemSet>,
}

impl Parties {
    fn new() -> Parties {
        let names = ["north", "east", "south"];
        let party = |(i, name): (usize, &&str)| ListedParty {
            name: name.to_string(),
            fingerprint: fingerprint(i),
            address: Some(format!("{name}.example.org:7000")),
        };
        let listed = Listed { leader: names[0].into(), party: names.iter().enumerate().map(party).collect() };
        let roster = Roster::new(listed, "parties.toml").unwrap();
        let set = |from: usize, n| (from..from + n).map(|i| format!("item {i}").into_bytes()).collect();
        Parties {
            mes: names.iter().map(|name| roster.clone().me(name).unwrap()).collect(),
            // Items of three parties, of two, and of one.
            sets: vec![set(0, 3), set(1, 3), set(2, 3)],
        }
    }

    /// The requests of all parties. The last one pads its set.
    fn requests(&self, protocol: &'static Protocol) -> Vec<Request<'_>> {
        let request = |i: usize| {
            let (me, set) = (&self.mes[i], &self.sets[i]);
            let role = Role::multiparty(me.leads());
            Request::new(protocol.offers[0].operation, role, set).with(|r| {
                r.spec.candidates = Choice::of(protocol).into();
                r.spec.parties = Some(me.clone());
                r.local.max_peer_items = 100;
                r.input.pad_to = (i == PARTIES - 1).then_some(4);
                r.spec.terms = Terms { max_row: 12, ..Terms::default() };
            })
        };
        (0..PARTIES).map(request).collect()
    }
}

/// The frames that each party sends to each: `sent[from][to]`.
type Sent = Vec<Vec<Vec<Vec<u8>>>>;

#[derive(Clone, Default)]
struct Tape(Arc<Mutex<Vec<u8>>>);

impl Write for Tape {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Tape {
    fn frames(&self) -> Vec<Vec<u8>> {
        let (mut frames, mut left) = (Vec::new(), &self.0.lock().unwrap()[..]);
        while !left.is_empty() {
            let length = HEADER + u32::from_le_bytes(left[2..HEADER].try_into().unwrap()) as usize;
            let (frame, rest) = left.split_at(length);
            frames.push(frame.to_vec());
            left = rest;
        }
        frames
    }
}

fn place(seat: Seat) -> usize {
    usize::from(seat.number().unwrap().get()) - 1
}

/// Runs one party under its fixed seed.
fn party(connected: impl Into<Connected>, request: &Request, us: usize) -> Result<RunOutcome> {
    run(connected, request, &mut hazmat::seeded(&[us as u8; 32]))
}

/// The messages of the parties in an honest run, and their results.
fn record(requests: &[Request]) -> (Sent, Vec<Learned>) {
    let tapes = vec![vec![(); PARTIES]; PARTIES];
    let tapes: Vec<Vec<Tape>> =
        tapes.iter().map(|row| row.iter().map(|()| Tape::default()).collect()).collect();
    let mut all = in_memory(requests[0].spec.parties.as_ref().unwrap().roster());
    for (to, connections) in all.iter_mut().enumerate() {
        for connection in connections {
            let tape = tapes[place(connection.seat)][to].clone();
            connection.channel.record(Recording::to_writer(tape));
        }
    }
    let learned = thread::scope(|s| {
        let runs = all.into_iter().zip(requests).enumerate();
        let runs = runs.map(|(us, (connections, request))| s.spawn(move || party(connections, request, us)));
        let runs: Vec<_> = runs.collect();
        runs.into_iter().map(|run| run.join().unwrap().unwrap().learned).collect()
    });
    (tapes.iter().map(|row| row.iter().map(Tape::frames).collect()).collect(), learned)
}

/// The roles of the parties in a case.
#[derive(Debug, Clone, Copy)]
struct Cast {
    us: usize,
    cheat: usize,
}

impl Cast {
    fn all() -> impl Iterator<Item = Cast> {
        let pairs = (0..PARTIES).flat_map(|us| (0..PARTIES).map(move |cheat| Cast { us, cheat }));
        pairs.filter(|cast| cast.us != cast.cheat)
    }

    /// The third party, which is honest.
    fn other(self) -> usize {
        PARTIES - self.us - self.cheat
    }

    /// The final messages of a party, which name the party because of which it stops: none, us, the third one, and one that
    /// does not exist. The last one is of a party without a list, which names nobody.
    fn aborts(self) -> Aborts {
        let [us, other] = [self.us, self.other()].map(|party| party as u8 + 1);
        let legal: [&[u8]; 7] = [&[1, 0], &[99, 0], &[4, us], &[5, other], &[9, other], &[4, 200], &[4]];
        Aborts { legal: legal.map(Vec::from).to_vec(), others: vec![vec![], vec![4, 0, 0]] }
    }
}

/// Runs our side against the scripts.
fn against(request: &Request, cast: Cast, sent: &Sent, case: &Case) -> (Result<RunOutcome>, Duration) {
    let Cast { us, cheat } = cast;
    let (mut ours, mut scripts) = (Vec::new(), Vec::new());
    for (from, connections) in
        in_memory(request.spec.parties.as_ref().unwrap().roster()).into_iter().enumerate()
    {
        for connection in connections {
            if from == us {
                ours.push(connection);
            } else if connection.seat == seat(us) {
                let acts = match from == cheat {
                    true => case.acts.clone(),
                    // An honest party stays until the end.
                    false => {
                        let frames = sent[from][us].iter().map(|frame| Act::Send(frame[..].into()));
                        frames.chain([Act::Stall]).collect()
                    }
                };
                scripts.push((connection.channel, acts));
            }
        }
    }
    ours.iter_mut().for_each(|connection| connection.channel.set_patience(case.patience()));
    let ours = Connected::from(ours);
    let canceller = ours.canceller();
    ended(scripts, canceller, || party(ours, request, us))
}

/// Checks that an error names the right party.
fn named(cast: Cast, tag: u16, kind: Kind, result: &Result<RunOutcome>) -> Result<(), String> {
    let cheat = format!("party {}", cast.cheat + 1);
    let right = match result {
        Ok(_) => true,
        Err(error @ (Error::Network(_) | Error::Refused(_))) => error.to_string().contains(&cheat),
        Err(error) => {
            let altered = matches!(kind, Kind::Value | Kind::Illegal);
            let somebody = altered && cast.us == 0 && BY_SOMEBODY.contains(&tag);
            // If such a frame is cut off, the hash at its end takes bytes of the next one.
            let altered = altered || kind == Kind::Structure && matches!(tag, 0x0b | 0xd9);
            let told_otherwise = altered && SAID_TO_ALL.contains(&tag);
            error.seat() == Some(seat(cast.cheat))
                || somebody && error.seat() == Some(Seat::SOMEBODY)
                || told_otherwise && error.to_string().contains("tells the others different things")
        }
    };
    match (right, result) {
        (false, Err(error)) => Err(format!("{cheat} cheats, but: {error:?}")),
        _ => Ok(()),
    }
}

/// Whether to run a case, as runs take long. `first` tells whether no case has this message yet, not even with the parties in
/// other roles.
fn matters(tag: u16, kind: Kind, first: bool) -> bool {
    let of_the_run = matches!(tag, ..0x10 | 0xd0..0xe0);
    match kind {
        Kind::Harmless | Kind::Value | Kind::LowOrder => true,
        // The order of frames does not depend on the parties, except in the steps of all.
        Kind::Structure | Kind::Abort | Kind::Silence => first || of_the_run,
        // A message with neither JSON nor elements has no illegal values.
        Kind::Illegal => of_the_run || matches!(tag, 0x31 | 0x32),
    }
}

#[test]
fn whatever_one_of_several_parties_does_to_a_frame_we_name_it() {
    let _alone = ONE_AT_A_TIME.lock();
    let parties = Parties::new();
    let runs = protocols::MULTIPARTY.map(|protocol| (protocol, parties.requests(protocol)));
    let recorded: Vec<_> = runs.iter().map(|(_, requests)| record(requests)).collect();
    let mut cases = Vec::new();
    let (mut tags, mut seen) = (BTreeSet::new(), BTreeSet::<(&str, u16, usize, usize)>::new());
    for ((protocol, requests), (sent, learned)) in runs.iter().zip(&recorded) {
        for cast @ Cast { us, cheat } in Cast::all() {
            let frames = &sent[cheat][us];
            for (at, now) in frames.iter().enumerate() {
                tags.insert(tag(now));
                // Messages that several protocols have in common are tampered with once. The first of several frames stands for
                // the others.
                let run = match tag(now) {
                    ..0x10 => "the agreement",
                    0xd0..0xe0 => protocol.name,
                    _ if protocol.computes(&INTERSECT) => protocol.name,
                    _ => "the tests and transfers of the others",
                };
                // The leader notices malformed rows only later: it must know which party sent them.
                let part = |party: usize| if tag(now) == 0x37 { party } else { party.min(1) };
                let first = !seen.iter().any(|(other, known, ..)| (*other, *known) == (run, tag(now)));
                if !seen.insert((run, tag(now), part(us), part(cheat))) {
                    continue;
                }
                let own: Vec<&[Vec<u8>]> = sent[us].iter().map(|frames| &frames[..]).collect();
                let replayed = replay(frames, at, &[&own[..], &[&frames[..at]]].concat());
                let tampered = tamper(frames, at, Some(groups::RISTRETTO255), &cast.aborts());
                for case in tampered.into_iter().chain(replayed) {
                    if matters(tag(now), case.kind, first) {
                        cases.push((protocol, &requests[us], cast, sent, &learned[us], at, case));
                    }
                }
            }
        }
    }
    let made = cases.len();
    let sent_tag = |c: &usize| {
        let (_, _, cast, sent, _, at, _) = &cases[*c];
        tag(&sent[cast.cheat][cast.us][*at])
    };
    let message = |c: &usize| (cases[*c].0.name, cases[*c].2.us, cases[*c].2.cheat, sent_tag(c));
    let drawn = drawn("several", made, message, |c| (sent_tag(c), cases[*c].6.kind));
    let mut cases: Vec<_> =
        cases.into_iter().enumerate().filter(|(i, _)| drawn.contains(i)).map(|(_, c)| c).collect();
    cases.sort_by_key(|c| c.6.kind != Kind::Silence);
    let exceptions = [EXCEPTIONS, MORE].concat();
    let failures = each(&cases, |(protocol, request, cast, sent, learned, at, case)| {
        let tag = tag(&sent[cast.cheat][cast.us][*at]);
        let (result, time) = against(request, *cast, sent, case);
        let verdict = in_time(time).and_then(|()| verdict(case, tag, &result, learned, &exceptions));
        let verdict = verdict.and_then(|()| named(*cast, tag, case.kind, &result));
        verdict.map_err(|why| format!("{protocol}, {cast:?}, frame {at} (tag {tag:#x}) {case}: {why}"))
    });
    println!("{} of {made} cases, {} frames", cases.len(), seen.len());
    none(&failures, cases.len());
    assert!(made > 2000, "{made}");
    for (tag, _, _, why) in MORE {
        assert!(tags.contains(tag), "{tag:#x}: {why}");
    }
}
