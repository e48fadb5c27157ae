//! A party's run on a thread of its own.

use crate::errors::{as_python, exception};
use crate::frame::{Frame, batches};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use veilset::channel::{Canceller, Observer, Unit};
use veilset::error::{Error, Result};
use veilset::job::{Job, Phase, Watch, write_report};
use veilset::net::Identity;
use veilset::table::{Batches, Destination, Table};
use veilset::threads::Threads;
use veilset_cli::front::{Front, Ready, ready};
use veilset_cli::{PartyPlan, Value, plan};

/// A run, from its beginning to its result. Its methods may be called from any thread.
#[pyclass(frozen, module = "veilset._native")]
pub(crate) struct Run {
    link: Link,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the run's thread and Python share.
#[derive(Clone, Default)]
struct Link(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    stopped: bool,
    /// What stops the run with the others, while there is one.
    run: Option<Canceller>,
    /// What there is to say: the kind and the text.
    said: VecDeque<(&'static str, String)>,
    doing: Doing,
    outcome: Option<Result<Done>>,
}

/// What is going on.
#[derive(Clone, Default)]
struct Doing {
    what: String,
    /// The number of the stage of the run, from 1; 0 before the run.
    stage: usize,
    /// The number of stages; 0 if it is not known.
    stages: usize,
    done: u64,
    /// 0 if it is not known.
    total: u64,
    unit: &'static str,
}

/// A completed run.
struct Done {
    report: Option<String>,
    text: String,
    frame: Option<Batches>,
    ids: Option<Batches>,
    map: Option<Batches>,
}

impl Link {
    fn now(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Link {
    /// Asks the run to stop.
    fn cancel(&self) {
        let mut state = self.now();
        state.stopped = true;
        let run = state.run.clone();
        drop(state);
        run.iter().for_each(Canceller::cancel);
    }
}

impl Drop for Run {
    /// A run that nobody waits for any more ends.
    fn drop(&mut self) {
        self.link.cancel();
    }
}

impl Front for Link {
    fn stopped(&self) -> bool {
        self.now().stopped
    }

    fn phase(&self, phase: Option<Phase>) {
        let what = match phase {
            Some(Phase::Reading) => "reading the table",
            Some(Phase::Sorting) => "sorting the keys",
            Some(_) => "hashing the keys",
            None => "waiting for the other party",
        };
        self.now().doing = Doing { what: what.into(), unit: "bytes", ..Doing::default() };
    }

    fn read(&self, bytes: u64) {
        self.now().doing.done = bytes;
    }

    fn say(&self, line: &str) {
        self.now().said.push_back(("info", as_python(line)));
    }

    fn warn(&self, line: &str) {
        self.now().said.push_back(("warning", as_python(line)));
    }

    fn begins(&self, canceller: Canceller) {
        let mut state = self.now();
        if state.stopped {
            canceller.cancel();
        }
        state.run = Some(canceller);
    }

    fn observer(&self, stages: usize) -> Option<Arc<dyn Observer>> {
        self.now().doing.stages = stages;
        Some(Arc::new(self.clone()))
    }

    fn together(&self, others: usize) {
        let what = format!("computing with {others} others");
        self.now().doing = Doing { what, unit: "bytes", ..Doing::default() };
    }

    fn ends(&self, _: bool) {
        self.now().run = None;
    }
}

impl Observer for Link {
    fn stage(&self, name: &'static str, unit: Unit, total: usize) {
        let mut state = self.now();
        let (stage, stages) = (state.doing.stage + 1, state.doing.stages);
        let (what, unit, total) = (name.into(), name_of(unit), total as u64);
        state.doing = Doing { what, stage, stages: stages.max(stage), done: 0, total, unit };
    }

    fn advance(&self, unit: Unit, amount: usize) {
        let doing = &mut self.now().doing;
        if doing.unit == name_of(unit) {
            doing.done += amount as u64;
        }
    }
}

fn name_of(unit: Unit) -> &'static str {
    if unit == Unit::Items { "items" } else { "bytes" }
}

#[pymethods]
impl Run {
    /// Starts a run, or its check. `options` are those of the operation; `frame` gives its table, if that is no file, and
    /// `in_memory` tells whether the result is wanted as a frame.
    #[new]
    #[pyo3(signature = (operation, options, frame = None, *, in_memory = true, check = false))]
    fn new(
        py: Python<'_>,
        operation: &str,
        options: &Bound<'_, PyDict>,
        frame: Option<&Bound<'_, PyAny>>,
        in_memory: bool,
        check: bool,
    ) -> PyResult<Run> {
        let options = options.iter().map(|(key, value)| Ok((key.extract()?, value_of(&value)?)));
        let options: Vec<(String, Value)> = options.collect::<PyResult<_>>()?;
        let mut plan = plan(operation, &options).map_err(|e| exception(py, &e))?;
        plan.job.in_memory = in_memory && plan.job.shape().has_items();
        let frame = frame.map(batches).transpose()?;
        let link = Link::default();
        let worker = link.clone();
        let work = move || {
            let read = |job: &Job, watch: &Watch<'_>| match frame {
                None => job.read(watch),
                Some(batches) => {
                    let name = job.source.input.display().to_string();
                    let schema = batches.schema();
                    let failed =
                        |e| Error::input(&name, format!("the next rows could not be had: {e}"), NEXT);
                    let mut bytes = 0;
                    let batches = batches.map(|batch| {
                        let batch = batch.map_err(failed)?;
                        bytes += batch.get_array_memory_size() as u64;
                        (watch.read)(bytes)?;
                        Ok(batch)
                    });
                    Table::from_batches(&name, &schema, batches, &job.source.read, job.columns().as_deref())
                }
            };
            let outcome = catch_unwind(AssertUnwindSafe(|| run(&mut plan, read, &worker, check)));
            worker.now().outcome = Some(outcome.unwrap_or_else(|_| Err(Error::Bug("a panic".into()))));
            worker.0.ended.notify_all();
        };
        let thread = Builder::new().name("veilset".into()).spawn(work)?;
        Ok(Run { link, thread: Mutex::new(Some(thread)) })
    }

    /// Waits for the end, at most so many seconds. Returns whether it is over.
    fn wait(&self, py: Python<'_>, seconds: f64) -> bool {
        let patience = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        py.detach(|| {
            let going = |state: &mut State| state.outcome.is_none();
            let waited = self.link.0.ended.wait_timeout_while(self.link.now(), patience, going);
            waited.map_or(true, |(state, _)| state.outcome.is_some())
        })
    }

    /// Asks the run to stop. The other party is told.
    fn cancel(&self, py: Python<'_>) {
        py.detach(|| self.link.cancel());
    }

    /// What was said since the last call: pairs of a kind, `info` or `warning`, and a text.
    fn said(&self) -> Vec<(&'static str, String)> {
        self.link.now().said.drain(..).collect()
    }

    /// What is going on: its name, the number of the stage and of all stages (0 before the run), how much of it is done and
    /// of how much (0 if that is not known), and in which unit.
    fn doing(&self) -> (String, usize, usize, u64, u64, &'static str) {
        let Doing { what, stage, stages, done, total, unit } = self.link.now().doing.clone();
        (what, stage, stages, done, total, unit)
    }

    /// The outcome, once it is over: a dictionary. Raises what went wrong. To be called once.
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Some(outcome) = self.link.now().outcome.take() else {
            return Err(PyRuntimeError::new_err("the run is not over, or its result was taken before"));
        };
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| thread.map(JoinHandle::join));
        let done = outcome.map_err(|e| exception(py, &e))?;
        let of = |batches: Option<Batches>| batches.map(|batches| Py::new(py, Frame(batches))).transpose();
        let result = PyDict::new(py);
        result.set_item("report", done.report)?;
        result.set_item("text", done.text)?;
        result.set_item("frame", of(done.frame)?)?;
        result.set_item("ids", of(done.ids)?)?;
        result.set_item("map", of(done.map)?)?;
        Ok(result)
    }
}

const NEXT: &str = "Look at what makes them, and run again";

/// Carries out the plan.
fn run(
    plan: &mut PartyPlan,
    table: impl FnOnce(&Job, &Watch<'_>) -> Result<Table>,
    link: &Link,
    check: bool,
) -> Result<Done> {
    plan.job.threads = Threads::new(plan.threads).map_err(|e| Error::Usage(format!("{e} (`threads`)")))?;
    let job = &plan.job;
    job.check_output()?;
    Destination::check(plan.report.as_deref(), job.force)?;
    ready(plan, table, link, |party| {
        let files = Files::create(plan)?;
        if check {
            let (checked, estimate) = party.check()?;
            let text = veilset_cli::check_text(&checked, &estimate, job.parties.as_ref());
            return Ok(Done { report: None, text: as_python(&text), frame: None, ids: None, map: None });
        }
        finish(party, files, link)
    })
}

/// The files that a run writes.
struct Files {
    output: Option<Destination>,
    ids: Option<Destination>,
    map: Option<Destination>,
    report: Option<Destination>,
}

impl Files {
    fn create(plan: &PartyPlan) -> Result<Files> {
        let job = &plan.job;
        let report = |path| Destination::create("report", Some(path), job.force);
        let output = if job.output.is_some() { job.create_output()? } else { None };
        let report = plan.report.as_deref().map(report).transpose()?;
        Ok(Files { output, ids: job.create_ids()?, map: job.create_map()?, report })
    }
}

/// Runs, and writes or keeps the result.
fn finish(party: Ready<'_>, files: Files, link: &Link) -> Result<Done> {
    let (job, data) = (&party.plan.job, party.data);
    let ran = party.run()?;
    let (outcome, mut report) = (ran.outcome, ran.report);
    let mut done = Done { report: None, text: String::new(), frame: None, ids: None, map: None };
    match files.output {
        Some(mut output) => {
            data.write(&outcome, &mut output)?;
            output.commit()?;
        }
        None => done.frame = data.batches(&outcome)?,
    }
    match files.ids {
        Some(mut ids) => {
            data.write_ids(&outcome, &mut ids)?;
            ids.commit()?;
        }
        None if job.has_identifiers() => done.ids = Some(data.ids(&outcome)?),
        None => {}
    }
    match files.map {
        Some(mut map) => {
            data.write_map(&outcome, &mut map)?;
            map.commit()?;
        }
        None if job.shares_ours() => done.map = Some(data.map(&outcome)?),
        None => {}
    }
    data.complete(&mut report);
    (done.report, done.text) = (Some(report.to_json()?), as_python(report.to_text().trim_end()));
    // The result is there; what is missing beside it is no reason to lose it.
    let reported = files.report.map_or(Ok(()), |file| write_report(&report, file));
    for failed in [reported, ran.logged].into_iter().filter_map(Result::err) {
        link.warn(&format!("the run is done, but {failed}"));
    }
    Ok(done)
}

/// The value of an option: a truth value, a number, a text, a path, or a list of such.
fn value_of(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if value.is_instance_of::<PyBool>() {
        return Ok(Value::Flag(value.extract()?));
    }
    if let Ok(list) = value.cast::<PyList>() {
        let texts = list.iter().map(|one| one.str()?.extract());
        return Ok(Value::List(texts.collect::<PyResult<_>>()?));
    }
    if let Ok(path) = value.extract::<PathBuf>() {
        return Ok(Value::Text(path.into_os_string()));
    }
    Ok(Value::Text(OsString::from(value.str()?.extract::<String>()?)))
}

/// The names of the operations, with what each is about.
#[pyfunction]
pub(crate) fn operations() -> Vec<(&'static str, &'static str)> {
    veilset::operations::ALL.iter().map(|operation| (operation.name, operation.about)).collect()
}

/// The options of an operation: the name of each, and its help.
#[pyfunction]
pub(crate) fn options(operation: &str) -> Vec<(String, String)> {
    let spelled = |(name, help): (String, String)| (name.replace('-', "_"), as_python(&help));
    veilset_cli::options(operation).into_iter().map(spelled).collect()
}

/// The path and the fingerprint of an identity; the default one if no path is given.
#[pyfunction]
pub(crate) fn identity(py: Python<'_>, path: Option<PathBuf>) -> PyResult<(PathBuf, String)> {
    let load = || {
        let path = path.map_or_else(Identity::default_path, Ok)?;
        let fingerprint = Identity::load(&path)?.fingerprint().to_string();
        Ok((path, fingerprint))
    };
    load().map_err(|e: Error| exception(py, &e))
}

/// Makes an identity; returns its path and its fingerprint.
#[pyfunction]
pub(crate) fn new_identity(py: Python<'_>, path: Option<PathBuf>) -> PyResult<(PathBuf, String)> {
    let make = || {
        let path = path.map_or_else(Identity::default_path, Ok)?;
        let identity = Identity::generate()?;
        identity.save(&path)?;
        Ok((path, identity.fingerprint().to_string()))
    };
    make().map_err(|e: Error| exception(py, &e))
}

/// The peers in the address book: name, fingerprint and address.
#[pyfunction]
pub(crate) fn peers(
    py: Python<'_>,
    book: Option<PathBuf>,
) -> PyResult<Vec<(String, String, Option<String>)>> {
    veilset_cli::peers(book.as_deref()).map_err(|e| exception(py, &e))
}

/// Gives a peer a name in the address book: its name, fingerprint and address. `identity` is ours, whose fingerprint is
/// refused.
#[pyfunction]
pub(crate) fn add_peer(
    py: Python<'_>,
    peer: (String, String, Option<String>),
    identity: Option<PathBuf>,
    book: Option<PathBuf>,
    force: bool,
) -> PyResult<()> {
    let (name, fingerprint, address) = peer;
    let peer = veilset_cli::NewPeer { name, fingerprint, address, identity, book, force };
    veilset_cli::add_peer(peer).map_err(|e| exception(py, &e))
}

/// Removes a peer from the address book.
#[pyfunction]
pub(crate) fn remove_peer(py: Python<'_>, name: String, book: Option<PathBuf>) -> PyResult<()> {
    veilset_cli::remove_peer(name, book).map_err(|e| exception(py, &e))
}
