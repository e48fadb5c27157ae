use super::*;
use crate::channel::{Channel, WireCount};
use crate::net::Connection;
use crate::operations::{INTERSECT, Operation, Role, UNION};
use crate::party::{InputTable, Watch, run};
use crate::protocols::{CWPRF, DH_PSI, VOLE};
use crate::table::{Duplicates, EmptyKeys};
use crate::testing::Cut;
use std::path::PathBuf;
use veilset_testing::Draw;

struct Side {
    folder: tempfile::TempDir,
    identities: [Identity; 2],
}

impl Side {
    fn new() -> Side {
        let identities = [(); 2].map(|()| Identity::generate().unwrap());
        Side { folder: tempfile::tempdir().unwrap(), identities }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A job on rows with these keys.
    fn party(&self, operation: &'static Operation, role: Role, keys: std::ops::Range<usize>) -> PartySpec {
        let file = self.path(&format!("{role}.csv"));
        let rows: String = keys.map(|i| format!("k{i},{}\n", i * i)).collect();
        std::fs::write(&file, format!("k,n\n{rows}")).unwrap();
        let mut party = PartySpec::new(operation, role, InputTable::new(file, ["k"]));
        party.spec.candidates = Choice::of(if operation == &UNION { &CWPRF } else { &VOLE }).into();
        party.spec.terms.shards = 4;
        party.folder = Some(self.path(&format!("{role}.job")));
        party.output = Some(self.path(&format!("{role}.result.csv")));
        party
    }

    /// Carries out one side. Returns its result, if it has one.
    fn carry_out(&self, party: &PartySpec, connection: Connection) -> Result<Option<String>> {
        party.check()?;
        let data = party.load(&Watch::NONE)?;
        let mut rng = Prng::from_os()?;
        let ours = usize::from(party.spec.role == Role::Sender);
        let identity = &self.identities[ours];
        // Channels in memory have no fingerprints.
        let prepared = data.prepare(Some(identity), &Watch::NONE, &mut rng)?;
        let kept = data.keep(Some(identity), None, &mut rng)?;
        let prepared = match &kept {
            Some(kept) => prepared.keeping(kept),
            None => prepared,
        };
        let output = party.create_output()?;
        let ran = run(connection, prepared, None, &mut rng)?;
        let Some(mut output) = output else { return Ok(None) };
        data.write(&ran.outcome, &mut output)?;
        output.commit()?;
        if let Some(kept) = kept {
            kept.leftover().delete()?;
        }
        Ok(Some(std::fs::read_to_string(party.output.as_deref().unwrap()).unwrap()))
    }

    /// Both sides; the connection breaks when one of them has sent so many frames.
    fn both(
        &self,
        [receiver, sender]: [&PartySpec; 2],
        breaks: Option<(usize, usize)>,
    ) -> [Result<Option<String>>; 2] {
        let (a, b) = Channel::pair();
        let mut sides = [a, b].map(Some);
        if let Some((side, after)) = breaks {
            let (sink, source) = sides[side].take().unwrap().into_halves();
            sides[side] = Some(Channel::from_halves(Box::new(Cut { sink, after }), source));
        }
        let [here, there] =
            sides.map(|channel| Connection::unprotected(channel.unwrap(), WireCount::default()));
        std::thread::scope(|s| {
            let there = s.spawn(|| self.carry_out(sender, there));
            [self.carry_out(receiver, here), there.join().unwrap()]
        })
    }

    fn jobs(&self, operation: &'static Operation) -> [PartySpec; 2] {
        [self.party(operation, Role::Receiver, 0..120), self.party(operation, Role::Sender, 60..170)]
    }
}

fn resumed(jobs: &[PartySpec; 2]) -> [PartySpec; 2] {
    jobs.clone().map(|mut party| {
        party.resume = true;
        party
    })
}

#[test]
fn a_job_in_a_folder_gives_what_one_run_gives_wherever_it_broke_off() {
    let mut draw = Draw::new("a job in a folder");
    for operation in [&INTERSECT, &UNION] {
        let side = Side::new();
        let jobs = side.jobs(operation);
        let mut plain = jobs.clone();
        plain
            .iter_mut()
            .for_each(|party| (party.spec.terms.shards, party.folder, party.force) = (0, None, true));
        let [expected, _] = side.both([&plain[0], &plain[1]], None).map(|came| came.unwrap());
        // In the order of the rows; a union's new rows are sorted.
        let mut jobs = jobs;
        jobs.iter_mut().for_each(|party| party.force = true);
        let (mut broke, mut compared) = (0, 0);
        let places = (0..2).flat_map(|side| [5, 9, 14, 22, 31].map(|after| (side, after)));
        // An early one, a late one, and one of each side in the middle, after both have heard that it began.
        let places = draw.of_each(1, places, |&(side, after)| match after {
            14 => (14, side),
            early if early < 14 => (0, 0),
            _ => (31, 0),
        });
        for &(side_of, after) in &places {
            let ended = side.both([&jobs[0], &jobs[1]], Some((side_of, after)));
            if ended[0].is_err() || ended[1].is_err() {
                broke += 1;
                let begun = jobs[0].folder.as_deref().unwrap().join("job").exists();
                let going = if begun { resumed(&jobs) } else { jobs.clone() };
                if !begun || !jobs[1].folder.as_deref().unwrap().join("job").exists() {
                    // One side has not heard that it began: it begins again on both.
                    jobs.iter()
                        .for_each(|party| drop(std::fs::remove_dir_all(party.folder.as_deref().unwrap())));
                    continue;
                }
                let [result, _] = side.both([&going[0], &going[1]], None).map(|came| came.unwrap());
                assert_eq!(result, expected, "{operation} {side_of} {after}");
                compared += 1;
                assert!(!jobs[0].folder.as_deref().unwrap().exists(), "the receiver's folder is deleted");
            }
            drop(std::fs::remove_dir_all(jobs[1].folder.as_deref().unwrap()));
        }
        println!("{operation} {places:?} {broke} {compared}");
        // After the last of these numbers of frames, a side may be done.
        assert!(broke + 4 >= places.len() && broke > 1 && compared > 1, "{broke} {compared}");
    }
}

#[test]
fn a_job_goes_on_as_it_began() {
    let side = Side::new();
    let jobs = side.jobs(&INTERSECT);
    let ended = side.both([&jobs[0], &jobs[1]], Some((1, 12)));
    assert!(ended.iter().all(Result::is_err), "{ended:?}");
    let [receiver, _] = resumed(&jobs);
    let refused = |party: &PartySpec, word: &str| {
        // Nobody is there.
        let here = Channel::pair().0;
        let came = side.carry_out(party, Connection::unprotected(here, WireCount::default()));
        assert!(matches!(&came, Err(Error::Usage(m)) if m.contains(word)), "{word}: {came:?}");
    };
    let with = |change: &dyn Fn(&mut PartySpec)| {
        let mut party = receiver.clone();
        change(&mut party);
        party
    };
    refused(&with(&|party| party.spec.terms.shards = 5), "`shards`");
    refused(&with(&|party| party.spec.terms.both = true), "`both`");
    refused(&with(&|party| party.source.pad_to = Some(500)), "`pad_to`");
    refused(&with(&|party| party.source.normalise = "trim".parse().unwrap()), "normalisation");
    refused(&with(&|party| party.spec.candidates = Choice::of(&DH_PSI).into()), "`protocol=vole`");
    refused(&with(&|party| party.resume = false), "already");
    let role = with(&|party| party.folder = Some(side.path("sender.job")));
    assert!(matches!(side.both([&role, &jobs[1]], None)[0], Err(Error::Input(_))), "another identity");
    // The same rows in another order, and one key more.
    let text = std::fs::read_to_string(&receiver.source.inputs[0]).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.swap(1, 2);
    std::fs::write(&receiver.source.inputs[0], lines.join("\n")).unwrap();
    refused(&receiver, "another input");
    std::fs::write(&receiver.source.inputs[0], format!("{text}more,1\n")).unwrap();
    refused(&receiver, "another input");
    // What is no key may have changed.
    std::fs::write(&receiver.source.inputs[0], text.replace(",3600", ",new")).unwrap();
    let [result, _] = side.both([&receiver, &resumed(&jobs)[1]], None);
    assert!(result.unwrap().unwrap().starts_with("k,n\nk60,new\nk61,3721\n"));
}

#[test]
fn a_sender_goes_on_with_the_cells_that_it_began_to_send() {
    let side = Side::new();
    let mut jobs = side.jobs(&INTERSECT);
    jobs.iter_mut().for_each(|party| party.spec.sent_columns = vec!["n".into()]);
    jobs[0].received_as = vec!["theirs".into()];
    let ended = side.both([&jobs[0], &jobs[1]], Some((1, 12)));
    assert!(ended.iter().all(Result::is_err), "{ended:?}");
    let [receiver, sender] = resumed(&jobs);
    let file = &sender.source.inputs[0];
    let text = std::fs::read_to_string(file).unwrap();
    std::fs::write(file, text.replace(",3600", ",3601")).unwrap();
    let data = sender.load(&Watch::NONE).unwrap();
    let kept = data.keep(Some(&side.identities[1]), None, &mut Prng::from_os().unwrap());
    assert!(matches!(kept.err(), Some(Error::Usage(m)) if m.contains("another input")));
    std::fs::write(file, text).unwrap();
    let [result, _] = side.both([&receiver, &sender], None);
    assert!(result.unwrap().unwrap().starts_with("k,n,theirs\nk60,3600,3600\n"));
}

#[test]
fn what_contradicts_itself_is_refused() {
    let side = Side::new();
    let [party, _] = side.jobs(&INTERSECT);
    let refused = |change: &dyn Fn(&mut PartySpec), word: &str| {
        let mut party = party.clone();
        change(&mut party);
        let came = party.check();
        assert!(matches!(&came, Err(Error::Usage(m)) if m.contains(word)), "{word}: {came:?}");
    };
    assert_eq!(party.check(), Ok(()));
    refused(&|party| party.spec.terms.shards = 0, "`shards`");
    refused(&|party| (party.resume, party.folder) = (true, None), "`job`");
    refused(&|party| party.filter = Some(side.path("filter")), "`filter`");
    refused(&|party| party.prepared = Some((side.path("half"), side.path("ledger"))), "`prepared`");
    // Without a folder there is nothing to encrypt.
    let mut in_memory = party.clone();
    in_memory.folder = None;
    assert_eq!(in_memory.check(), Ok(()));
    let data = in_memory.load(&Watch::NONE).unwrap();
    let mut rng = Prng::from_os().unwrap();
    assert!(data.keep(None, None, &mut rng).unwrap().is_none());
    let data = party.load(&Watch::NONE).unwrap();
    assert!(matches!(data.keep(None, None, &mut rng), Err(Error::Usage(m)) if m.contains("identity")));
}

#[test]
fn a_job_is_with_one_peer() {
    let side = Side::new();
    let jobs = side.jobs(&INTERSECT);
    assert!(side.both([&jobs[0], &jobs[1]], Some((1, 12))).iter().all(Result::is_err));
    let [receiver, sender] = resumed(&jobs);
    let data = receiver.load(&Watch::NONE).unwrap();
    let mut rng = Prng::from_os().unwrap();
    let other = Some(side.identities[1].fingerprint());
    let refused = data.keep(Some(&side.identities[0]), other, &mut rng).err();
    assert!(matches!(&refused, Some(Error::Usage(m)) if m.contains("`peer`")), "{refused:?}");
    // What the connection says counts.
    let kept = data.keep(Some(&side.identities[0]), None, &mut rng).unwrap().unwrap();
    let prepared = data.prepare(None, &Watch::NONE, &mut rng).unwrap().keeping(&kept);
    let (here, there) = Channel::pair();
    let [mut here, there] = [here, there].map(|ch| Connection::unprotected(ch, WireCount::default()));
    here.peer = other;
    std::thread::scope(|s| {
        s.spawn(|| side.carry_out(&sender, there));
        let refused = run(here, prepared, None, &mut rng).err();
        assert!(matches!(&refused, Some(Error::Refused(m)) if m.contains("another peer")), "{refused:?}");
    });
}

/// The table of a party: keys of which some come several times, in its piece and in others, and some are missing.
fn rows(first: usize, n: usize, seed: u8) -> String {
    let mut rng = Prng::from_seed(&[seed; 32]);
    let row = |i: usize| match rng.below(8) {
        0 => format!(",none{i}\n"),
        1 | 2 => format!("k{},again{i}\n", first + rng.below(n as u64) as usize),
        _ => format!("k{},row{i}\n", first + i),
    };
    format!("k,note\n{}", (0..n).map(row).collect::<String>())
}

#[test]
fn a_job_gives_what_one_run_gives_for_tables_of_all_kinds() {
    let side = Side::new();
    let mut seed = 0;
    for operation in [&INTERSECT, &UNION] {
        for (duplicates, sent, both, pad_to) in [
            (Duplicates::First, true, true, None),
            (Duplicates::All, true, false, Some(90)),
            (Duplicates::All, false, true, None),
            (Duplicates::First, false, false, Some(70)),
        ] {
            seed += 1;
            let all = duplicates == Duplicates::All;
            if all && operation == &UNION {
                continue;
            }
            let mut jobs = side.jobs(operation);
            for (party, (first, n)) in jobs.iter_mut().zip([(0, 60), (20, 50)]) {
                std::fs::write(&party.source.inputs[0], rows(first, n, seed + first as u8)).unwrap();
                (party.folder, party.force, party.spec.terms.both) = (None, true, both);
                party.source.empty_keys = EmptyKeys::Skip;
                party.source.pad_to = pad_to;
                party.spec.sent_columns = if sent { vec!["note".into()] } else { vec![] };
            }
            if all {
                jobs[0].source.duplicates = Some(duplicates);
            }
            jobs[0].received_as = if sent { vec!["theirs".into()] } else { vec![] };
            let mut plain = jobs.clone();
            plain.iter_mut().for_each(|party| party.spec.terms.shards = 0);
            let expected = side.both([&plain[0], &plain[1]], None).map(|came| came.unwrap());
            let result = side.both([&jobs[0], &jobs[1]], None).map(|came| came.unwrap());
            assert_eq!(result, expected, "{operation} {all} {sent} {both}");
            let facts = |party: &PartySpec| {
                let data = party.load(&Watch::NONE).unwrap();
                assert_eq!(data.keys().is_some(), party.spec.terms.shards == 0);
                format!("{:?}", data.facts())
            };
            assert!(jobs.iter().zip(&plain).all(|(party, plain)| facts(party) == facts(plain)));
        }
    }
}

#[test]
fn what_is_wrong_with_a_table_is_said_as_in_one_run() {
    let side = Side::new();
    let [party, _] = side.jobs(&INTERSECT);
    let many: String = (0..20).map(|i| format!("k{i},{i}\n")).collect();
    let cases = [
        format!("k,n\n{many}k3,again\n{many}"),
        format!("k,n\n{many}k20,1\nk20,2\n"),
        format!("k,n\n{many},none\n"),
        format!("k,n\n{many}only\n"),
        "k\n\"".into(),
        "".into(),
    ];
    for text in cases {
        std::fs::write(&party.source.inputs[0], &text).unwrap();
        let error = |shards| {
            let mut party = party.clone();
            party.spec.terms.shards = shards;
            party.source.duplicates = Some(Duplicates::Error);
            party.load(&Watch::NONE).err().map(|error| error.to_string())
        };
        assert_eq!(error(4), error(0), "{text}");
        assert!(error(4).is_some(), "{text}");
    }
    // A folder for the set that is not there.
    let mut party = party;
    party.folder = Some(side.path("missing").join("folder"));
    std::fs::write(&party.source.inputs[0], "k,n\n").unwrap();
    assert!(matches!(party.load(&Watch::NONE).err(), Some(Error::Output(m)) if m.contains("missing")));
}

#[test]
fn a_file_that_has_changed_gives_no_result() {
    let side = Side::new();
    let [party, _] = side.jobs(&INTERSECT);
    let text = std::fs::read_to_string(&party.source.inputs[0]).unwrap();
    let data = party.load(&Watch::NONE).unwrap();
    let prepared = data.prepare(None, &Watch::NONE, &mut Prng::from_os().unwrap()).unwrap();
    let outcome = |text: &str| {
        let mut sender = party.clone();
        (sender.spec.role, sender.folder, sender.output) = (Role::Sender, None, None);
        sender.source.inputs = vec![side.path("same.csv")];
        std::fs::write(&sender.source.inputs[0], text).unwrap();
        let (here, there) = Channel::pair();
        let [here, there] = [here, there].map(|ch| Connection::unprotected(ch, WireCount::default()));
        std::thread::scope(|s| {
            s.spawn(|| side.carry_out(&sender, there).unwrap());
            run(here, prepared, None, &mut Prng::from_os().unwrap()).unwrap().outcome
        })
    };
    let outcome = outcome(&text);
    let written = |text: &str| {
        std::fs::write(&party.source.inputs[0], text).unwrap();
        let mut output = party.create_output().unwrap().unwrap();
        data.write(&outcome, &mut output)
    };
    for changed in [format!("{text}more,1\n"), text.replacen("k0,0\n", "", 1)] {
        let error = written(&changed).unwrap_err();
        assert!(
            error.to_string().contains("has changed") && error.to_string().contains("`resume`"),
            "{error}"
        );
    }
    std::fs::remove_file(&party.source.inputs[0]).unwrap();
    assert!(data.write(&outcome, &mut party.create_output().unwrap().unwrap()).is_err());
}
