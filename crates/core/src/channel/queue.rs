//! A bounded queue between the two halves of a duplex step, the error of a half that has lost the other, and steps of a
//! protocol that begin before the earlier ones have ended.

use super::clock::{Moment, Places};
use super::{Channel, Rx, Tx};
use crate::error::{Error, Result};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Never reported, unless a half ends early and returns `Ok`.
const CONSEQUENCE: &str = "half of a duplex step ended before the other had what it needed";

/// The error of a half of a duplex step that knows only that the other half has ended. [`Channel::duplex`] returns it
/// only if there is no other error, which is a bug.
pub(crate) fn consequence() -> Error {
    Error::Bug(CONSEQUENCE.into())
}

/// How much an error reveals about the cause, if both halves of a duplex step have failed. A network error may be a
/// consequence of the other half's error, or of a reason that the peer reported before it left.
pub(crate) fn weight(error: &Error) -> u8 {
    match error {
        Error::Bug(what) if **what == *CONSEQUENCE => 0,
        Error::Network(_) => 1,
        _ => 2,
    }
}

/// The producer's end of a queue.
pub(crate) struct Put<T> {
    to: SyncSender<(T, Moment)>,
    bound: usize,
    places: Places,
}

/// The consumer's end of a queue.
pub(crate) struct Take<T> {
    from: Receiver<(T, Moment)>,
    places: Places,
}

/// Returns the ends of a queue of at most `bound` elements.
pub(crate) fn queue<T>(bound: usize) -> (Put<T>, Take<T>) {
    let ((to, from), places) = (sync_channel(bound), Places::default());
    (Put { to, bound, places: places.clone() }, Take { from, places })
}

impl<T> Put<T> {
    /// Appends an element; blocks while the queue is full.
    ///
    /// # Errors
    /// [`consequence`] if the consumer has ended.
    pub(crate) fn put(&self, element: T) -> Result<()> {
        self.to.send((element, Moment::now())).map_err(|_| consequence())?;
        self.places.has_put(self.bound);
        Ok(())
    }
}

impl<T> Take<T> {
    /// Returns the next element; blocks while there is none.
    ///
    /// # Errors
    /// [`consequence`] if the producer has ended and the queue is empty.
    pub(crate) fn take(&self) -> Result<T> {
        self.places.takes();
        let (element, moment) = self.from.recv().map_err(|_| consequence())?;
        moment.reach();
        Ok(element)
    }
}

impl Channel {
    /// Runs a duplex step in which the producer passes elements to the consumer, at most `bound` of them ahead. Each
    /// half owns its end of the queue: however one half ends, the other does not wait for it.
    pub(crate) fn duplex_with_queue<A: Send, B, T: Send>(
        &mut self,
        bound: usize,
        produce: impl FnOnce(&mut Tx, Put<T>) -> Result<A> + Send,
        consume: impl FnOnce(&mut Rx, Take<T>) -> Result<B>,
    ) -> Result<(A, B)> {
        let (put, take) = queue(bound);
        self.duplex(|tx| produce(tx, put), |rx| consume(rx, take))
    }
}

/// Begins a step for each frame, and ends it, with what its beginning returned, before the step `ahead` frames later begins. So
/// the peer has up to `ahead` frames to work on. Steps begin and end in the order of the frames.
pub(crate) fn pipelined<F: Copy, C, T>(
    ahead: usize,
    frames: impl Iterator<Item = F>,
    cx: &mut C,
    mut begin: impl FnMut(&mut C, F) -> Result<T>,
    mut end: impl FnMut(&mut C, F, T) -> Result<()>,
) -> Result<()> {
    let mut begun = VecDeque::with_capacity(ahead);
    for frame in frames {
        if begun.len() == ahead
            && let Some((frame, of)) = begun.pop_front()
        {
            end(cx, frame, of)?;
        }
        begun.push_back((frame, begin(cx, frame)?));
    }
    begun.into_iter().try_for_each(|(frame, of)| end(cx, frame, of))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Message;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread::sleep;
    use std::time::Duration;

    const BYTES: Message<[u8]> = Message::new(1, "bytes");

    fn pause() {
        sleep(Duration::from_millis(100));
    }

    /// The error of a step whose producer (or else consumer) fails with `cause`, and the error sent to the peer. The
    /// other half notices first that the queue has ended, unless `first` is set.
    fn failed(cause: &Error, producer: bool, first: bool) -> (Error, Error) {
        let (mut a, mut b) = Channel::pair();
        let fail = || {
            if !first {
                pause();
            }
            Err::<(), _>(cause.clone())
        };
        let wait = || {
            if first {
                pause();
            }
        };
        let result = match producer {
            true => a.duplex_with_queue(
                1,
                |_, put: Put<()>| {
                    drop(put);
                    fail()
                },
                |_, take| {
                    wait();
                    take.take()
                },
            ),
            false => a.duplex_with_queue(
                1,
                |_, put: Put<()>| {
                    wait();
                    loop {
                        put.put(())?;
                    }
                },
                |_, take| {
                    drop(take);
                    fail()
                },
            ),
        };
        drop(a);
        (result.unwrap_err(), b.rx.recv_bytes(BYTES, 1).unwrap_err())
    }

    #[test]
    fn the_cause_is_returned_whichever_half_notes_first() {
        let causes = [
            Error::Network("connection reset".into()),
            Error::Output("disk full".into()),
            Error::Bug("a defect".into()),
            Error::Cancelled,
        ];
        for cause in causes {
            for (producer, first) in [(true, true), (true, false), (false, true), (false, false)] {
                assert_eq!(failed(&cause, producer, first).0, cause, "{producer} {first}");
            }
        }
    }

    #[test]
    fn the_peer_is_told_the_cause_and_not_its_consequence() {
        for producer in [true, false] {
            let told = failed(&Error::Output("disk full".into()), producer, false).1;
            assert!(told.to_string().contains("could not write its result"), "{told}");
        }
    }

    #[test]
    fn a_consequence_without_a_cause_is_a_bug() {
        let (mut a, _b) = Channel::pair();
        let e = a.duplex_with_queue(1, |_, _: Put<()>| Ok(()), |_, take| take.take()).unwrap_err();
        assert!(matches!(&e, Error::Bug(what) if what.contains("ended before the other")), "{e}");
    }

    #[test]
    fn a_producer_gets_no_further_ahead_than_the_bound() {
        let (mut a, _b) = Channel::pair();
        let ahead = AtomicUsize::new(0);
        let step = a.duplex_with_queue(
            5,
            |_, put| {
                (0..20).try_for_each(|i| {
                    put.put(i)?;
                    ahead.fetch_add(1, Ordering::Relaxed);
                    Ok(())
                })
            },
            |_, take| {
                pause();
                assert_eq!(ahead.load(Ordering::Relaxed), 5);
                (0..20).map(|_| take.take()).collect::<Result<Vec<_>>>()
            },
        );
        assert_eq!(step.unwrap().1, (0..20).collect::<Vec<_>>());
    }
    #[test]
    fn a_step_ends_before_the_step_so_many_frames_later_begins() {
        let order = |frames: usize, ahead| {
            let mut seen = Vec::new();
            let begin = |seen: &mut Vec<_>, i| {
                seen.push((true, i));
                Ok(i)
            };
            let end = |seen: &mut Vec<_>, i, of| {
                assert_eq!(i, of);
                seen.push((false, i));
                Ok(())
            };
            pipelined(ahead, 0..frames, &mut seen, begin, end).unwrap();
            seen.into_iter()
                .map(|(begins, i)| format!("{}{i}", if begins { '+' } else { '-' }))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(order(0, 2), "");
        assert_eq!(order(1, 2), "+0 -0");
        assert_eq!(order(4, 2), "+0 +1 -0 +2 -1 +3 -2 -3");
        assert_eq!(order(3, 1), "+0 -0 +1 -1 +2 -2");
        let failed = pipelined(
            1,
            0..3,
            &mut (),
            |(), i| Ok(i),
            |(), i, _| match i {
                0 => Ok(()),
                _ => Err(Error::Cancelled),
            },
        );
        assert_eq!(failed, Err(Error::Cancelled));
    }
}
