//! Logical clocks [Lamport, *Time, Clocks, and the Ordering of Events in a Distributed System*, 1978], with which tests
//! count the rounds of a run. Other builds count nothing, and a [`Moment`] takes no space.
//!
//! A thread's clock is the length of the longest chain of messages between the parties that led to its current state,
//! each sent after receipt of the one before. So rounds depend on the data flow, not on speed. A value from another
//! thread of the same party advances the clock to the moment of its release by that thread. Such values are an element
//! of a queue, a free place in a queue, or the start or end of a step on another thread.

#[cfg(any(test, feature = "test-util"))]
use std::cell::Cell;
#[cfg(any(test, feature = "test-util"))]
use std::sync::{Arc, Mutex};

/// A moment on the logical clock of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(#[cfg(any(test, feature = "test-util"))] usize);

/// The moments at which the places of a bounded queue became free.
#[derive(Clone, Default)]
pub(crate) struct Places(#[cfg(any(test, feature = "test-util"))] Arc<Mutex<Turns>>);

#[cfg(not(any(test, feature = "test-util")))]
impl Moment {
    /// Returns the current moment of this thread.
    pub(crate) fn now() -> Moment {
        Moment()
    }

    /// Advances this thread's clock to this moment, unless it is already later.
    pub(crate) fn reach(self) {}
}

#[cfg(not(any(test, feature = "test-util")))]
impl Places {
    /// Records that an element is about to be taken.
    pub(crate) fn takes(&self) {}

    /// Advances the clock to the moment at which there was a place for the element that was just put into a queue of at
    /// most `bound`.
    pub(crate) fn has_put(&self, _bound: usize) {}
}

#[cfg(any(test, feature = "test-util"))]
thread_local! {
    static NOW: Cell<usize> = const { Cell::new(0) };
}

#[cfg(any(test, feature = "test-util"))]
impl Moment {
    pub(crate) fn now() -> Moment {
        Moment(NOW.get())
    }

    pub(crate) fn reach(self) {
        NOW.set(NOW.get().max(self.0));
    }

    /// The moment at which a message sent at this moment arrives.
    pub(crate) fn next(self) -> Moment {
        Moment(self.0 + 1)
    }

    /// The number of rounds that led to this moment.
    pub(crate) fn rounds(self) -> usize {
        self.0
    }
}

/// The number of elements put, and the moments at which elements were taken.
#[cfg(any(test, feature = "test-util"))]
#[derive(Default)]
struct Turns {
    put: usize,
    taken: Vec<Moment>,
}

#[cfg(any(test, feature = "test-util"))]
#[allow(clippy::unwrap_used)]
impl Places {
    pub(crate) fn takes(&self) {
        self.0.lock().unwrap().taken.push(Moment::now());
    }

    pub(crate) fn has_put(&self, bound: usize) {
        let mut turns = self.0.lock().unwrap();
        // The queue had room, so `put - bound + 1` takes had already begun.
        if let Some(earlier) = turns.put.checked_sub(bound) {
            turns.taken[earlier].reach();
        }
        turns.put += 1;
    }
}

#[cfg(test)]
mod tests {
    use crate::channel::{Channel, Message};
    use crate::testing::Rounds;
    use std::thread;
    use std::time::Duration;

    const BYTES: Message<[u8]> = Message::new(1, "bytes");

    /// Counts the rounds, which must not depend on which party is slow.
    fn counted(first: impl Fn(&mut Channel) + Sync, second: impl Fn(&mut Channel) + Sync) -> usize {
        let counts = [[0, 0], [20, 0], [0, 20]].map(|slow| {
            let (rounds, [mut a, mut b]) = Rounds::pair();
            let wait = |at: usize| thread::sleep(Duration::from_millis(slow[at]));
            thread::scope(|s| {
                s.spawn(|| {
                    wait(0);
                    first(&mut a);
                });
                s.spawn(|| {
                    wait(1);
                    second(&mut b);
                });
            });
            rounds.count()
        });
        assert_eq!(counts, [counts[0]; 3]);
        counts[0]
    }

    #[test]
    fn messages_that_wait_for_none_are_one_round_however_they_cross() {
        let both = |ch: &mut Channel| {
            ch.duplex(
                |tx| (0..3).try_for_each(|_| tx.send_bytes(BYTES, &[0])),
                |rx| (0..3).try_for_each(|_| rx.recv_bytes(BYTES, 1).map(drop)),
            )
            .unwrap();
        };
        assert_eq!(counted(both, both), 1);
        // After the step, each thread has the moments of both halves.
        let then = |ch: &mut Channel| {
            both(ch);
            ch.tx.send_bytes(BYTES, &[0]).unwrap();
            ch.rx.recv_bytes(BYTES, 1).unwrap();
        };
        assert_eq!(counted(then, then), 2);
    }

    #[test]
    fn an_answer_is_a_round() {
        let answers = |ch: &mut Channel| {
            for _ in 0..3 {
                ch.rx.recv_bytes(BYTES, 1).unwrap();
                ch.tx.send_bytes(BYTES, &[0]).unwrap();
            }
        };
        let asks = |ch: &mut Channel| {
            for _ in 0..3 {
                ch.tx.send_bytes(BYTES, &[0]).unwrap();
                ch.rx.recv_bytes(BYTES, 1).unwrap();
            }
        };
        assert_eq!(counted(asks, answers), 6);
        // All questions sent at once.
        let at_once = |ch: &mut Channel| {
            (0..3).for_each(|_| ch.tx.send_bytes(BYTES, &[0]).unwrap());
            (0..3).for_each(|_| drop(ch.rx.recv_bytes(BYTES, 1).unwrap()));
        };
        assert_eq!(counted(at_once, answers), 2);
    }

    #[test]
    fn who_is_only_so_many_ahead_waits_for_answers() {
        let answers = |ch: &mut Channel| {
            for _ in 0..9 {
                ch.rx.recv_bytes(BYTES, 1).unwrap();
                ch.tx.send_bytes(BYTES, &[0]).unwrap();
            }
        };
        for (ahead, rounds) in [(1, 10), (4, 4), (8, 2), (9, 2)] {
            let asks = |ch: &mut Channel| {
                ch.duplex_with_queue(
                    ahead,
                    |tx, queue| {
                        (0..9).try_for_each(|i| {
                            tx.send_bytes(BYTES, &[0])?;
                            queue.put(i)
                        })
                    },
                    |rx, queue| {
                        (0..9).try_for_each(|i| {
                            rx.recv_bytes(BYTES, 1)?;
                            assert_eq!(queue.take()?, i);
                            Ok(())
                        })
                    },
                )
                .unwrap();
            };
            assert_eq!(counted(asks, answers), rounds, "{ahead}");
        }
    }
}
