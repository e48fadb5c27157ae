//! Measures the speed of this machine.
//!
//! Hashes of items, multiplications of points, and TLS are timed directly. For other primitives, protocols run between two
//! parties in memory. Then each party runs once more, alone, on one thread, with the messages it received the first time, and
//! is timed. Subtracting the times of known primitives leaves the time of the unknown one. On a busy machine the difference can
//! be zero, so it is bounded from below.

use super::{FARTHEST, Speeds};
use crate::channel::{Channel, Message, Recording, Timeouts, replay};
use crate::context::Context;
use crate::equality::Equality;
use crate::equality::nibbles::Nibbles;
use crate::error::{Error, Result};
use crate::group::{self, Group, InGroup, Key};
use crate::hash::{ItemHash, SessionId};
use crate::hashed::HashedSet;
use crate::item::{ItemSet, Items, hashes_of};
use crate::net::{Endpoint, Identity, Listener, Protection, establish};
use crate::operations::cost::Deal;
use crate::operations::{Announced, Role, Task, Terms};
use crate::oprf::Oprf;
use crate::oprf::vole::Rr22;
use crate::ot::{Security, base, extension, transfer};
use crate::protocols::{self, Probe, Protocol, groups};
use crate::rng::Prng;
use crate::threads::{Threads, joined, start};
use crate::vole::silent::Silent;
use crate::vole::{Element, Receiver as _, Sender as _, Vole};
use crate::work::{Primitive, Work};
use std::io::{Cursor, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The factor by which a program with debug assertions measures less. It is ten times as slow, and is not used for planning.
const LESS: usize = if cfg!(debug_assertions) { 16 } else { 1 };
/// Number of points to multiply.
const POINTS: usize = (1 << 11) / LESS;
/// Repetitions of operations that take well under a microsecond.
const MANY: usize = (1 << 19) / LESS;
/// Repetitions of other operations.
const SOME: usize = (1 << 14) / LESS;
/// Elements of a VOLE that are made from correlated OTs alone.
const FEW: usize = 1 << 8;
/// How long a party waits for the other over TLS.
const PATIENCE: Duration = Duration::from_secs(20);
/// Length of an item in bytes.
const ITEM: usize = 16;
/// Bytes of a row to transfer.
const ROW: usize = 24;
/// Bits of the strings to compare.
const BITS: u32 = 64;
/// Number of frames sent under TLS, and their length in bytes.
const FRAMES: usize = 512 / LESS;
const FRAME: usize = 1 << 17;
const FILL: Message<[u8]> = Message::new(0x0f, "measurement of TLS");

/// Measures all primitives that this program has, which takes a few seconds, and calls `begins` for each. `threads` is the
/// number of threads that the machine computes on.
///
/// # Errors
/// [`Error::Usage`] if no thread can be started, or no port can be listened at; the errors of the protocols, and of the
/// connection of this machine with itself.
pub fn measure(threads: usize, begins: &mut dyn FnMut(Primitive)) -> Result<Speeds> {
    let speeds = Speeds::built_in(1);
    let mut bench = Bench { speeds, one: Threads::new(1)?, rng: Prng::from_os()?, runs: 0, begins };
    bench.items();
    bench.points(groups::ALL.iter().copied())?;
    bench.transfers()?;
    bench.stores()?;
    bench.comparisons()?;
    bench.tls()?;
    let probes =
        protocols::ALL.into_iter().flat_map(|protocol| protocol.probes.iter().map(move |p| (protocol, p)));
    let mut probes: Vec<_> = probes.collect();
    probes.sort_by_key(|(_, probe)| probe.primitive);
    probes.into_iter().try_for_each(|(protocol, probe)| bench.probe(protocol, probe))?;
    Ok(bench.speeds.on(threads))
}

/// The time of one primitive in picoseconds, if `n` take this number of seconds. At least 1, even if no time could be measured.
pub(super) fn picoseconds(seconds: f64, n: usize) -> u64 {
    ((seconds * 1e12 / n.max(1) as f64).round() as u64).max(1)
}

/// The time of one primitive in picoseconds, if `n` and others that take `known` seconds take `seconds` together. A difference
/// of two measurements can be too small, so the result is at least the built-in time divided by [`FARTHEST`].
pub(super) fn left(seconds: f64, known: f64, n: usize, built_in: u64) -> u64 {
    picoseconds(seconds - known, n).max((built_in as f64 / FARTHEST).ceil() as u64)
}

/// The measurements so far.
struct Bench<'b> {
    speeds: Speeds,
    one: Threads,
    rng: Prng,
    /// Number of runs of a party so far, not counting the timed ones. Each has a generator of its own, which its timed run
    /// repeats.
    runs: u64,
    begins: &'b mut dyn FnMut(Primitive),
}

impl Bench<'_> {
    /// Sets the time of this primitive; `n` of it take `seconds`.
    fn set(&mut self, primitive: Primitive, seconds: f64, n: usize) {
        self.speeds.picoseconds[primitive as usize] = picoseconds(seconds, n);
    }

    /// Sets the time of this primitive; `n` of it, together with known work that takes `known` seconds, take `seconds`.
    fn set_left(&mut self, primitive: Primitive, seconds: f64, known: f64, n: usize) {
        let built_in = Speeds::built_in(1).picoseconds(primitive);
        self.speeds.picoseconds[primitive as usize] = left(seconds, known, n, built_in);
    }

    fn begin(&mut self, primitive: Primitive) {
        (self.begins)(primitive);
    }

    /// Runs `work` on one thread. Returns its result, and its time in seconds.
    fn time<T: Send>(&self, work: impl FnOnce() -> T + Send) -> (T, f64) {
        let start = Instant::now();
        let result = self.one.run(work);
        (result, start.elapsed().as_secs_f64())
    }

    fn items(&mut self) {
        self.begin(Primitive::Item);
        let set = self.one.run(|| random_items(&self.rng, 0..SOME));
        let (_, seconds) = self.time(|| hashes_of(&set).len());
        self.set(Primitive::Item, seconds, SOME);
    }

    fn points(&mut self, names: impl IntoIterator<Item = &'static str>) -> Result<()> {
        struct Multiply<'m>(&'m Threads, &'m mut Prng);
        impl InGroup for Multiply<'_> {
            type Output = f64;
            fn run<G: Group>(self) -> f64 {
                let key = G::Key::random(self.1);
                let hashes: Vec<ItemHash> = (0..POINTS).map(|_| ItemHash::random(self.1)).collect();
                // The first half of the multiplications includes mapping the points.
                let start = Instant::now();
                let points = self.0.run(|| G::map_and_raise(&hashes, &key)).unwrap_or_default();
                let raised = self.0.run(|| G::raise(&points, &key)).unwrap_or_default();
                start.elapsed().as_secs_f64() * (2 * POINTS) as f64
                    / (points.len() + raised.len()).max(1) as f64
            }
        }
        for name in names {
            let facts = group::facts(name).ok_or_else(|| Error::bug(format!("the speed of {name}")))?;
            self.begin(facts.multiplication);
            let seconds = group::with(name, Multiply(&self.one, &mut self.rng)).unwrap_or_default();
            self.set(facts.multiplication, seconds, 2 * POINTS);
        }
        Ok(())
    }

    /// Measures base OTs, and rows transferred with OTs.
    fn transfers(&mut self) -> Result<()> {
        self.begin(Primitive::BaseOt);
        let n = extension::WIDTH;
        let times = self.alone(
            |cx| base::receiver(cx, "speed", &vec![false; n]).map(drop),
            |cx| base::sender(cx, "speed", n).map(drop),
        )?;
        self.set(Primitive::BaseOt, mean(times), n);
        self.begin(Primitive::Ot);
        let (k, choices) = (extension::DEFAULT_K, vec![false; SOME]);
        let times = self.alone(
            |cx| {
                let mut ot = extension::Receiver::setup(cx, "speed", k, Security::SemiHonest)?;
                transfer::receive(cx.ch, &mut ot, &choices, true, ROW, |_, _| ())
            },
            |cx| {
                let mut ot = extension::Sender::setup(cx, "speed", k, Security::SemiHonest)?;
                transfer::send(cx.ch, &mut ot, SOME, true, ROW, |_, _| ())
            },
        )?;
        self.set_left(Primitive::Ot, mean(times), self.speeds.seconds(&base_ots()), SOME);
        Ok(())
    }

    /// Measures a VOLE, and an OPRF over it with a key-value store.
    fn stores(&mut self) -> Result<()> {
        let vole = Silent::default();
        for (primitive, n) in [(Primitive::CorrelatedOt, FEW), (Primitive::VoleElement, MANY)] {
            self.begin(primitive);
            let times = self.alone(
                |cx| vole.receiver(cx, "speed")?.next::<Element>(cx, n, |_, _| Ok(())).map(drop),
                |cx| vole.sender(cx, "speed")?.next::<Element>(cx, n).map(drop),
            )?;
            let work = base_ots() + vole.work::<Element>(std::iter::once(n));
            self.rest(mean(times), &work, primitive);
        }
        self.begin(Primitive::StoreValue);
        let inputs: Vec<ItemHash> = (0..MANY).map(|_| ItemHash::random(&mut self.rng)).collect();
        let oprf = Rr22::new(Silent::default());
        let cost = oprf.cost(crate::params::LAMBDA, MANY, MANY).work();
        let times = self.alone(
            |cx| oprf.receiver(cx, &inputs, MANY).map(drop),
            |cx| oprf.sender(cx, &inputs, MANY).map(drop),
        )?;
        self.rest(times[1], &cost[1], Primitive::StoreValue);
        self.begin(Primitive::StoreRow);
        self.rest(times[0], &cost[0], Primitive::StoreRow);
        Ok(())
    }

    fn comparisons(&mut self) -> Result<()> {
        self.begin(Primitive::Compared);
        let (equality, strings) = (Nibbles::default(), vec![0u128; SOME]);
        let times = self.alone(
            |cx| equality.receiver(cx, &strings, BITS).map(drop),
            |cx| equality.sender(cx, &strings, BITS).map(drop),
        )?;
        self.set_left(Primitive::Compared, mean(times), self.speeds.seconds(&base_ots()), SOME);
        Ok(())
    }

    /// Measures TLS over a connection of this machine with itself. The parties are two threads, so this is the time of the
    /// slower one.
    fn tls(&mut self) -> Result<()> {
        self.begin(Primitive::Kilobyte);
        let timeouts = Timeouts { connect: PATIENCE, idle: PATIENCE };
        let [ours, theirs] = [Identity::generate()?, Identity::generate()?];
        let [our_key, their_key] = [ours.fingerprint(), theirs.fingerprint()];
        let listener = Listener::bind("127.0.0.1:0")?;
        let endpoint = Endpoint::connect(listener.local_addr().to_string());
        let under = |identity, peer| Protection::Tls { identity: Arc::new(identity), peer };
        let (here, there) = (under(ours, their_key), under(theirs, our_key));
        let seconds = std::thread::scope(|scope| {
            let other = start(scope, move || -> Result<f64> {
                let mut connection = establish(&endpoint, &there, timeouts, &|| false, &|_| ())?;
                connection.channel.rx.recv_bytes(FILL, FRAME)?;
                let start = Instant::now();
                (1..FRAMES).try_for_each(|_| connection.channel.rx.recv_bytes(FILL, FRAME).map(drop))?;
                let seconds = start.elapsed().as_secs_f64();
                connection.channel.close();
                Ok(seconds)
            })?;
            let mut connection = listener.accept(&here, timeouts, &|| false, &|_| ())?;
            let frame = vec![0; FRAME];
            (0..FRAMES).try_for_each(|_| connection.channel.tx.send_bytes(FILL, &frame))?;
            connection.channel.close();
            joined(other.join())
        })?;
        self.set(Primitive::Kilobyte, seconds, (FRAMES - 1) * FRAME / 1000);
        Ok(())
    }

    /// Measures the only unknown primitive from the time of a party in a run.
    fn probe(&mut self, protocol: &'static Protocol, probe: &Probe) -> Result<()> {
        let Probe { primitive, operation, group, items, role } = *probe;
        // With fewer items, other primitives would take most of the time.
        let n = items.min((items / LESS).max(1 << 10));
        self.begin(primitive);
        let [y, x] = [0..n, n / 2..n / 2 + n].map(|range| self.one.run(|| random_items(&self.rng, range)));
        let [y, x] = [&y, &x].map(|set| self.one.run(|| HashedSet::new(set)));
        let terms = Terms { max_row: ROW, ..Terms::default() };
        let all = Announced { size: n, padded: false };
        let cost = protocol.cost(&Deal { operation, terms, group, receiver: all, sender: all })?;
        let party = |role, set| {
            move |cx: &mut Context| {
                let (values, payloads, filter) = (&[][..], const { &Items::new() }, None);
                let task = Task { operation, role, group, set, values, payloads, terms, filter };
                protocols::run(protocol, &task, cx, all).map(drop)
            }
        };
        let times = self.alone(party(Role::Receiver, &y), party(Role::Sender, &x))?;
        // The sets were hashed in advance.
        let work = cost.work(role).without(Primitive::Item, n);
        self.rest(times[role as usize], &work, primitive);
        Ok(())
    }

    /// Sets the time of a primitive: the rest of `seconds` for this work, given the times of all other primitives.
    fn rest(&mut self, seconds: f64, work: &Work, primitive: Primitive) {
        self.speeds.picoseconds[primitive as usize] = 0;
        self.set_left(primitive, seconds, self.speeds.seconds(work), work.count(primitive) as usize);
    }

    /// The times of two parties, each run alone with a recording of the messages it received.
    fn alone(
        &mut self,
        first: impl Fn(&mut Context) -> Result<()> + Sync,
        second: impl Fn(&mut Context) -> Result<()> + Sync,
    ) -> Result<[f64; 2]> {
        self.runs += 2;
        let session = SessionId::of(self.rng.bytes());
        // The same generators once more: a recording is valid only for its randomness.
        let rng = |party: u64| self.rng.fork(self.runs + party);
        let run = |party: &(dyn Fn(&mut Context) -> Result<()> + Sync), mut ch: Channel, mut rng: Prng| {
            let threads = &self.one;
            let exponent = crate::params::LAMBDA;
            party(&mut Context { ch: &mut ch, session, rng: &mut rng, exponent, threads })
        };
        let (mut a, mut b) = Channel::pair();
        let kept = [Kept::default(), Kept::default()];
        a.record(Recording::to_writer(kept[0].clone()));
        b.record(Recording::to_writer(kept[1].clone()));
        std::thread::scope(|scope| {
            let other = start(scope, || run(&first, a, rng(0)))?;
            let this = run(&second, b, rng(1));
            let other = joined(other.join());
            this.and(other)
        })?;
        let mut times = [0.0; 2];
        for (i, party) in
            [&first as &(dyn Fn(&mut Context) -> Result<()> + Sync), &second].into_iter().enumerate()
        {
            let (channel, rng) = (replay(Cursor::new(kept[i].take())), rng(i as u64));
            let start = Instant::now();
            run(party, channel, rng)?;
            times[i] = start.elapsed().as_secs_f64();
        }
        Ok(times)
    }
}

/// The bytes that a party received.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Kept {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The base OTs of an extension.
fn base_ots() -> Work {
    Work::of(Primitive::BaseOt, extension::WIDTH)
}

fn mean([one, other]: [f64; 2]) -> f64 {
    (one + other) / 2.0
}

fn random_items(rng: &Prng, range: std::ops::Range<usize>) -> ItemSet {
    let rng = rng.fork(0);
    range.map(|i| rng.fork(i as u64).bytes::<ITEM>()).collect()
}

/// The name of this machine's processor, if the system provides it; otherwise its architecture, "without a name".
pub fn this_machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split_once(':')).map(|(_, name)| name.trim().to_string());
    model.unwrap_or_else(|| format!("{} without a name", std::env::consts::ARCH))
}
