//! Jobs with a table spread over workers: the work on its pieces, and the side that agrees on the whole.

use crate::errors::{exception, told};
use crate::frame::{Frame, batches};
use crate::link::Link;
use crate::run::{Ended, Run, alone, carry_out, planned, read, values};
use crate::stream::Stream;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyIterator};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use veilset::error::{Error, Result};
use veilset::item::ItemSet;
use veilset::net::{Endpoint, Identity, Label};
use veilset::party::{Data, PartySpec, Watch};
use veilset::secret::Secret;
use veilset::sharded::disk::{Part, Source};
use veilset::sharded::elsewhere::{self, Elsewhere};
use veilset::sharded::engine::{Kept, Lanes, RemoteSet, Workers};
use veilset::sharded::set::Sum;
use veilset::sharded::workers::{Lane, Ticket};
use veilset::spelling::PROXY;
use veilset::table::Profile;
use veilset_app::config::worker;
use veilset_app::plan::WorkerPlan;

const HASH: usize = 32;

/// Returns the numbers of the rows of this piece that have a key, in 4 bytes each, and the hashes of their keys, in 32 bytes
/// each.
#[pyfunction]
pub(crate) fn piece_hashes<'py>(
    py: Python<'py>,
    operation: &str,
    options: &Bound<'py, PyDict>,
    frame: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let (rows, hashes) = of_piece(py, operation, options, frame, |data| data.hashes())?;
    let rows: Vec<u8> = rows.iter().flat_map(|row| row.to_le_bytes()).collect();
    let hashes: Vec<u8> = hashes.iter().flat_map(|hash| hash.as_bytes().iter().copied()).collect();
    Ok((PyBytes::new(py, &rows), PyBytes::new(py, &hashes)))
}

/// Returns the number of items of this piece, the number of its rows whose keys occurred before, its part of the digests, and
/// how many of its keys may cost matches.
#[pyfunction]
pub(crate) fn piece_sums<'py>(
    py: Python<'py>,
    operation: &str,
    options: &Bound<'py, PyDict>,
    keys: &[u8],
    frame: &Bound<'py, PyAny>,
) -> PyResult<(u64, u64, Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let keys = keys_of(keys)?;
    let sums = of_piece(py, operation, options, frame, |data| data.sums(&keys))?;
    let bytes: Vec<u8> = sums.sums.iter().flatten().flat_map(|part| part.to_le_bytes()).collect();
    let profile = sums.profile.counts().map(u64::to_le_bytes).concat();
    Ok((sums.items, sums.duplicates, PyBytes::new(py, &bytes), PyBytes::new(py, &profile)))
}

/// Returns the positions in the key of the columns that become text because of the workers' results for these shards. `frame`
/// is any piece.
#[pyfunction]
pub(crate) fn piece_text_keys(
    py: Python<'_>,
    operation: &str,
    options: &Bound<'_, PyDict>,
    learned: Vec<Vec<u8>>,
    frame: &Bound<'_, PyAny>,
) -> PyResult<BTreeSet<usize>> {
    of_piece(py, operation, options, frame, |data| {
        let of_each = learned.iter().map(|learned| data.text_keys_of(learned));
        Ok(of_each.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    })
}

/// Returns the result rows of this piece, which is a shard, given its worker's result; `None` if our result has no rows. The
/// columns at these positions of the key are text.
#[pyfunction]
pub(crate) fn piece_result(
    py: Python<'_>,
    operation: &str,
    options: &Bound<'_, PyDict>,
    learned: Vec<u8>,
    text_keys: Vec<usize>,
    frame: &Bound<'_, PyAny>,
) -> PyResult<Option<Frame>> {
    of_piece(py, operation, options, frame, |data| data.batches_of(&learned, &text_keys))
        .map(|rows| rows.map(Frame::from))
}

/// Returns the shard of each row with these hashes, in 4 bytes each, under the key of a job with `number` shards.
#[pyfunction]
pub(crate) fn piece_shards<'py>(
    py: Python<'py>,
    key: &[u8],
    number: u32,
    hashes: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let key = Secret::new(key.try_into().map_err(|_| PyValueError::new_err("no key"))?);
    let (hashes, []) = hashes.as_chunks::<HASH>() else { return Err(PyValueError::new_err("no hashes")) };
    let shards = py.detach(|| elsewhere::shards_of(&key, number, hashes));
    let shards: Vec<u8> = shards.iter().flat_map(|shard| shard.to_le_bytes()).collect();
    Ok(PyBytes::new(py, &shards))
}

/// Returns the number of a ticket's lane, and its shards.
#[pyfunction]
pub(crate) fn ticket_lane(py: Python<'_>, ticket: &[u8]) -> PyResult<(u16, Vec<u32>)> {
    let ticket = Ticket::of_bytes(ticket).map_err(|e| exception(py, &e, &[]))?;
    Ok((ticket.lane(), ticket.shards().to_vec()))
}

/// Returns the label with which a proxy finds the worker of a lane.
#[pyfunction]
pub(crate) fn label(py: Python<'_>, lane: u16, route: &str) -> PyResult<String> {
    Label::new(lane, route).map(|label| label.to_string()).map_err(|e| exception(py, &e, &[]))
}

/// Returns the keys for the digests of a set, under this identity or the default one.
#[pyfunction]
pub(crate) fn digest_keys(py: Python<'_>, identity: Option<PathBuf>) -> PyResult<Bound<'_, PyBytes>> {
    let load = || Identity::load(&identity.map_or_else(Identity::default_path, Ok)?);
    let identity = load().map_err(|e: Error| exception(py, &e, &[]))?;
    let keys = elsewhere::keys(&identity);
    PyBytes::new_with(py, keys.len() * HASH, |bytes| {
        bytes.chunks_mut(HASH).zip(&keys).for_each(|(bytes, key)| bytes.copy_from_slice(&**key));
        Ok(())
    })
}

/// Runs a worker's shards. `hands` has three methods: `piece(shard)` returns its rows, `keep(shard, learned)` takes its result,
/// and `stopped()` tells whether to stop.
#[pyfunction]
pub(crate) fn run_lane(
    py: Python<'_>,
    operation: &str,
    options: &Bound<'_, PyDict>,
    ticket: &[u8],
    place: Place,
    hands: Py<PyAny>,
) -> PyResult<()> {
    let plan = begun(py, operation, options)?;
    let lane = || Ok((Ticket::of_bytes(ticket)?, place.endpoint()?));
    let (ticket, endpoint) = lane().map_err(|e: Error| exception(py, &e, &[]))?;
    let hands = Hands { plan: &plan, hands: &hands, raised: Mutex::new(None) };
    let ran = py.detach(|| {
        let (nothing, compared) = (ItemSet::default(), plan.party.compared());
        let keep = |shard: u32, learned: &[u8]| hands.keep(shard, learned);
        Lane {
            request: plan.party.request(&nothing, &compared),
            source: &hands,
            keep: &keep,
            endpoint: &endpoint,
            timeouts: plan.timeouts,
            cancelled: &|| hands.stopped(),
            notice: &|_| (),
        }
        .run(&ticket)
    });
    match hands.raised.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => ran.map_err(|e| exception(py, &e, &[])),
    }
}

/// The source of a worker's shards and the sink for their results, in Python.
struct Hands<'a> {
    plan: &'a WorkerPlan,
    hands: &'a Py<PyAny>,
    /// The first exception that `piece` or `keep` raised.
    raised: Mutex<Option<PyErr>>,
}

impl Hands<'_> {
    fn keep(&self, shard: u32, learned: &[u8]) -> Result<()> {
        let kept = Python::attach(|py| {
            self.hands.call_method1(py, "keep", (shard, PyBytes::new(py, learned))).map(drop)
        });
        kept.map_err(|e| self.note(e, "the result of a shard could not be handed over"))
    }

    fn stopped(&self) -> bool {
        Python::attach(|py| self.hands.call_method0(py, "stopped")?.extract(py)).unwrap_or(true)
    }

    /// Keeps the first exception, which is raised again in the end.
    fn note(&self, error: PyErr, what: &str) -> Error {
        let message = format!("{what}: {}", told(&error));
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        Error::output(message)
    }
}

impl Source for Hands<'_> {
    fn part(&self, part: u32) -> Result<Part> {
        let rows = Python::attach(|py| batches(self.hands.call_method1(py, "piece", (part,))?.bind(py)));
        let rows = rows.map_err(|e| self.note(e, "the rows of a shard could not be obtained"))?;
        data_of(self.plan, rows)?.part()
    }
}

/// The means for a worker to reach its counterpart: it listens at an address, or connects to one, perhaps through a proxy.
/// Proxies may distinguish workers by a label.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Place {
    listen: Option<String>,
    connect: Option<String>,
    proxy: Option<String>,
    label: Option<String>,
}

impl Place {
    fn endpoint(self) -> Result<Endpoint> {
        let label = self.label.map(|label| label.parse()).transpose()?;
        match (self.listen, self.connect, self.proxy) {
            (Some(address), None, None) => Ok(Endpoint::Listen { address, label }),
            (None, Some(address), proxy) => Ok(Endpoint::Connect { address, proxy, label }),
            (Some(_), None, Some(_)) => Err(Error::usage(format!(
                "{PROXY} is for the side that connects, and this worker listens. Omit it"
            ))),
            (Some(_), Some(_), _) | (None, None, _) => {
                Err(Error::Usage("a worker listens, or connects. Give it one place".into()))
            }
        }
    }
}

/// Returns the plan of a worker, with its threads started.
fn begun(py: Python<'_>, operation: &str, options: &Bound<'_, PyDict>) -> PyResult<WorkerPlan> {
    worker(operation, &values(options)?).and_then(WorkerPlan::of).map_err(|e| exception(py, &e, &[]))
}

fn data_of(plan: &WorkerPlan, rows: Stream) -> Result<Data<'_>> {
    let link = Link::<()>::new();
    let table = read(Some(rows), &link)(&plan.party.source, plan.party.columns().as_deref(), &Watch::NONE)?;
    Data::of(&plan.party, table, &Watch::NONE)
}

/// Applies a function to the data of a piece.
fn of_piece<T: Send>(
    py: Python<'_>,
    operation: &str,
    options: &Bound<'_, PyDict>,
    frame: &Bound<'_, PyAny>,
    then: impl FnOnce(&Data<'_>) -> Result<T> + Send,
) -> PyResult<T> {
    let plan = begun(py, operation, options)?;
    let rows = batches(frame)?;
    py.detach(|| then(&data_of(&plan, rows)?)).map_err(|e| exception(py, &e, &[]))
}

fn keys_of(bytes: &[u8]) -> PyResult<[Secret<[u8; HASH]>; 2]> {
    match bytes.as_chunks() {
        ([for_log, for_job], []) => Ok([Secret::new(*for_log), Secret::new(*for_job)]),
        _ => Err(PyValueError::new_err("no keys")),
    }
}

/// The known facts about the whole table: the numbers of items, rows, rows whose key occurred before, and skipped rows; the
/// keys for the digests, and the sums under them; how many keys may cost matches.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Whole {
    items: usize,
    rows: u64,
    duplicates: u64,
    skipped: u64,
    keys: Vec<u8>,
    sums: Vec<u8>,
    profile: [u64; 7],
}

impl Whole {
    fn spread(&self, crew: Py<PyAny>, link: Link<Ended>) -> PyResult<RemoteSet> {
        let number = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).unwrap_or_default();
        let numbers: Vec<u64> = self.sums.chunks(8).map(number).collect();
        let sums =
            numbers.chunks(4).map(|sum| Sum::try_from(sum).map_err(|_| PyValueError::new_err("no sums")));
        let sums = sums.collect::<PyResult<Vec<Sum>>>()?;
        let sums = keys_of(&self.keys)?.into_iter().zip(sums).collect();
        Ok(RemoteSet { items: self.items, sums, workers: Box::new(Crew { crew, link }) })
    }
}

/// Starts the run of the side that agrees.
pub(crate) fn agree(
    py: Python<'_>,
    operation: &str,
    options: &Bound<'_, PyDict>,
    whole: Whole,
    crew: Py<PyAny>,
) -> PyResult<Run> {
    let mut plan = planned(operation, &values(options)?).map_err(|e| exception(py, &e, &[]))?;
    let link = Link::new();
    let spread = whole.spread(crew, link.clone())?;
    Run::over(link, move |link| carry_out(&mut plan, elsewhere(spread, whole), link, false).map_err(alone))
}

/// Returns a function that makes the data of a job whose table is spread over workers.
fn elsewhere(
    spread: RemoteSet,
    whole: Whole,
) -> impl for<'j> FnOnce(&'j PartySpec, &Watch<'_>) -> Result<Data<'j>> {
    let Whole { rows, duplicates, skipped, profile, .. } = whole;
    let profile = Profile::of_counts(profile);
    move |party, _| Data::elsewhere(party, Elsewhere::new(party, spread, rows, duplicates, skipped, profile))
}

/// The workers as an engine provides them: an object with `cut`, `lanes`, `run` and `result`.
struct Crew {
    crew: Py<PyAny>,
    link: Link<Ended>,
}

impl Workers for Crew {
    fn cut(&self, key: &[u8; HASH]) -> Result<()> {
        let cut = Python::attach(|py| self.crew.call_method1(py, "cut", (PyBytes::new(py, key),)).map(drop));
        cut.map_err(|e| Error::output(format!("the workers could not cut the table: {}", told(&e))))
    }

    fn lanes(&self) -> Lanes {
        let lanes = Python::attach(|py| self.crew.call_method0(py, "lanes")?.extract(py));
        let (at_once, places) = lanes.unwrap_or((0, None));
        Lanes { at_once, places }
    }

    fn run(&self, tickets: &[Secret<Vec<u8>>], keep: &Kept<'_>) -> Result<Vec<Option<String>>> {
        let failed = |e: PyErr| Error::output(format!("the workers could not be used: {}", told(&e)));
        // The iterator yields results as they arrive, errors, and from time to time `None`.
        let results = Python::attach(|py| -> PyResult<Py<PyIterator>> {
            let tickets: Vec<_> = tickets.iter().map(|ticket| PyBytes::new(py, ticket)).collect();
            Ok(self.crew.bind(py).call_method1("run", (tickets,))?.try_iter()?.unbind())
        });
        let results = results.map_err(failed)?;
        let mut wrong = Vec::new();
        loop {
            type Yielded = Option<(Option<u32>, Vec<u8>, String)>;
            let next = Python::attach(|py| -> PyResult<Option<Yielded>> {
                results.bind(py).clone().next().map(|next| next?.extract()).transpose()
            });
            match next.map_err(failed)? {
                None => return Ok(wrong),
                Some(None) => {}
                Some(Some((Some(shard), learned, _))) => keep(shard, &learned)?,
                Some(Some((None, _, what))) => wrong.push(Some(what)),
            }
            if self.link.is_stopped() {
                let _closed = Python::attach(|py| results.call_method0(py, "close"));
                return Err(Error::Cancelled);
            }
        }
    }

    fn result(&self, shard: u32, learned: &[u8]) -> Result<()> {
        let taken = Python::attach(|py| {
            self.crew.call_method1(py, "result", (shard, PyBytes::new(py, learned))).map(drop)
        });
        taken.map_err(|e| {
            Error::output(format!("the result of a shard could not be handed over: {}", told(&e)))
        })
    }
}
