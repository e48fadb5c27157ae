use super::*;
use crate::channel::{Channel, WireCount};
use crate::job::{InputTable, Watch, run};
use crate::net::Connection;
use crate::operations::{INTERSECT, Operation, Role, UNION};
use crate::protocols::{CWPRF, DH_PSI, VOLE};
use crate::testing::Cut;
use std::path::PathBuf;

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
    fn job(&self, operation: &'static Operation, role: Role, keys: std::ops::Range<usize>) -> Job {
        let file = self.path(&format!("{role}.csv"));
        let rows: String = keys.map(|i| format!("k{i},{}\n", i * i)).collect();
        std::fs::write(&file, format!("k,n\n{rows}")).unwrap();
        let mut job = Job::new(operation, role, InputTable::new(file, ["k"]));
        job.protocol = if operation == &UNION { &CWPRF } else { &VOLE };
        job.terms.shards = 4;
        job.folder = Some(self.path(&format!("{role}.job")));
        job.output = Some(self.path(&format!("{role}.result.csv")));
        job
    }

    /// Carries out one side. Returns its result, if it has one.
    fn carry_out(&self, job: &Job, connection: Connection) -> Result<Option<String>> {
        job.check()?;
        let data = job.load(&Watch::NONE)?;
        let mut rng = Prng::from_os()?;
        let ours = usize::from(job.role == Role::Sender);
        let identity = &self.identities[ours];
        // Channels in memory have no fingerprints.
        let prepared = data.prepare(Some(identity), &Watch::NONE, &mut rng)?;
        let kept = data.keep(Some(identity), None, &mut rng)?;
        let prepared = match &kept {
            Some(kept) => prepared.keeping(kept),
            None => prepared,
        };
        let output = job.create_output()?;
        let ran = run(connection, prepared, None, &mut rng)?;
        let Some(mut output) = output else { return Ok(None) };
        data.write(&ran.outcome, &mut output)?;
        output.commit()?;
        if let Some(kept) = kept {
            kept.delete()?;
        }
        Ok(Some(std::fs::read_to_string(job.output.as_deref().unwrap()).unwrap()))
    }

    /// Both sides; the connection breaks when one of them has sent so many frames.
    fn both(
        &self,
        [receiver, sender]: [&Job; 2],
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

    fn jobs(&self, operation: &'static Operation) -> [Job; 2] {
        [self.job(operation, Role::Receiver, 0..120), self.job(operation, Role::Sender, 60..170)]
    }
}

fn resumed(jobs: &[Job; 2]) -> [Job; 2] {
    jobs.clone().map(|mut job| {
        job.resume = true;
        job
    })
}

#[test]
fn a_job_in_a_folder_gives_what_one_run_gives_wherever_it_broke_off() {
    for operation in [&INTERSECT, &UNION] {
        let side = Side::new();
        let jobs = side.jobs(operation);
        let mut plain = jobs.clone();
        plain.iter_mut().for_each(|job| (job.terms.shards, job.folder, job.force) = (0, None, true));
        let [expected, _] = side.both([&plain[0], &plain[1]], None).map(|came| came.unwrap());
        // In the order of the rows; a union's new rows are sorted.
        let mut jobs = jobs;
        jobs.iter_mut().for_each(|job| job.force = true);
        let mut broke = 0;
        for (side_of, after) in (0..2).flat_map(|side| [5, 9, 14, 22, 31].map(|after| (side, after))) {
            let ended = side.both([&jobs[0], &jobs[1]], Some((side_of, after)));
            if ended[0].is_err() || ended[1].is_err() {
                broke += 1;
                let begun = jobs[0].folder.as_deref().unwrap().join("job").exists();
                let going = if begun { resumed(&jobs) } else { jobs.clone() };
                if !begun || !jobs[1].folder.as_deref().unwrap().join("job").exists() {
                    // One side has not heard that it began: it begins again on both.
                    jobs.iter().for_each(|job| drop(std::fs::remove_dir_all(job.folder.as_deref().unwrap())));
                    continue;
                }
                let [result, _] = side.both([&going[0], &going[1]], None).map(|came| came.unwrap());
                assert_eq!(result, expected, "{operation} {side_of} {after}");
                assert!(!jobs[0].folder.as_deref().unwrap().exists(), "the receiver's folder is deleted");
            }
            drop(std::fs::remove_dir_all(jobs[1].folder.as_deref().unwrap()));
        }
        assert!(broke >= 6, "{broke}");
    }
}

#[test]
fn a_job_goes_on_as_it_began() {
    let side = Side::new();
    let jobs = side.jobs(&INTERSECT);
    let ended = side.both([&jobs[0], &jobs[1]], Some((1, 12)));
    assert!(ended.iter().all(Result::is_err), "{ended:?}");
    let [receiver, _] = resumed(&jobs);
    let refused = |job: &Job, word: &str| {
        // Nobody is there.
        let here = Channel::pair().0;
        let came = side.carry_out(job, Connection::unprotected(here, WireCount::default()));
        assert!(matches!(&came, Err(Error::Usage(m)) if m.contains(word)), "{word}: {came:?}");
    };
    let with = |change: &dyn Fn(&mut Job)| {
        let mut job = receiver.clone();
        change(&mut job);
        job
    };
    refused(&with(&|job| job.terms.shards = 5), "`shards`");
    refused(&with(&|job| job.terms.both = true), "`both`");
    refused(&with(&|job| job.source.pad_to = Some(500)), "`pad_to`");
    refused(&with(&|job| job.source.normalise = "trim".parse().unwrap()), "normalisation");
    refused(&with(&|job| job.protocol = &DH_PSI), "`protocol=vole`");
    refused(&with(&|job| job.resume = false), "already");
    let role = with(&|job| job.folder = Some(side.path("sender.job")));
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
fn what_contradicts_itself_is_refused() {
    let side = Side::new();
    let [job, _] = side.jobs(&INTERSECT);
    let refused = |change: &dyn Fn(&mut Job), word: &str| {
        let mut job = job.clone();
        change(&mut job);
        let came = job.check();
        assert!(matches!(&came, Err(Error::Usage(m)) if m.contains(word)), "{word}: {came:?}");
    };
    assert_eq!(job.check(), Ok(()));
    refused(&|job| job.terms.shards = 0, "`shards`");
    refused(&|job| (job.resume, job.folder) = (true, None), "`job`");
    refused(&|job| job.filter = Some(side.path("filter")), "`filter`");
    refused(&|job| job.prepared = Some((side.path("half"), side.path("ledger"))), "`prepared`");
    // Without a folder there is nothing to encrypt.
    let mut in_memory = job.clone();
    in_memory.folder = None;
    assert_eq!(in_memory.check(), Ok(()));
    let data = in_memory.load(&Watch::NONE).unwrap();
    let mut rng = Prng::from_os().unwrap();
    assert!(data.keep(None, None, &mut rng).unwrap().is_none());
    let data = job.load(&Watch::NONE).unwrap();
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
