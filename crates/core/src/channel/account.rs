//! The costs of a run, for its report: the bytes of each message, and the time of each stage.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of all frames of a message, including their headers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageBytes {
    /// The message's name in words.
    pub name: &'static str,
    /// Bytes sent to the peer.
    pub sent: u64,
    /// Bytes received from the peer.
    pub received: u64,
}

impl MessageBytes {
    /// Byte counts for the message of this name.
    pub fn new(name: &'static str, (sent, received): (u64, u64)) -> MessageBytes {
        MessageBytes { name, sent, received }
    }
}

/// The time that a stage of a run took, summed over all its occurrences.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StageTime {
    /// The stage's name.
    pub name: &'static str,
    /// Seconds spent in the stage.
    pub seconds: f64,
}

/// Counts bytes and times stages. Clones share one account.
///
/// Entries are named by messages and stages of this program, so their number is bounded. A frame is entered once its
/// tag and length are known to be the expected ones.
#[derive(Debug, Clone, Default)]
pub struct Account(Arc<Mutex<Entries>>);

#[derive(Debug, Default)]
struct Entries {
    /// Byte counts by tag, in order of first use.
    messages: Vec<(u16, MessageBytes)>,
    /// Times by name, in order of first use.
    stages: Vec<(&'static str, Duration)>,
    /// The current stage, and when it began.
    now: Option<(usize, Instant)>,
}

impl Account {
    /// Begins a stage, which ends the previous one.
    pub fn begin(&self, stage: &'static str) {
        let mut entries = self.entries();
        entries.end_stage();
        let known = entries.stages.iter().position(|(name, _)| *name == stage);
        let at = known.unwrap_or_else(|| {
            entries.stages.push((stage, Duration::ZERO));
            entries.stages.len() - 1
        });
        entries.now = Some((at, Instant::now()));
    }

    /// Ends the last stage, and returns the times of all stages.
    pub fn stages(&self) -> Vec<StageTime> {
        let mut entries = self.entries();
        entries.end_stage();
        let time = |&(name, took): &(&'static str, Duration)| StageTime { name, seconds: took.as_secs_f64() };
        entries.stages.iter().map(time).collect()
    }

    /// Returns the bytes of each message, summed over the channels of these accounts.
    pub fn messages<'a>(accounts: impl IntoIterator<Item = &'a Account>) -> Vec<MessageBytes> {
        let mut all = Entries::default();
        for account in accounts {
            for (tag, message) in &account.entries().messages {
                all.count((*tag, message.name), (message.sent, message.received));
            }
        }
        all.messages.into_iter().map(|(_, message)| message).collect()
    }

    pub(super) fn sent(&self, message: (u16, &'static str), bytes: usize) {
        self.entries().count(message, (bytes as u64, 0));
    }

    pub(super) fn received(&self, message: (u16, &'static str), bytes: usize) {
        self.entries().count(message, (0, bytes as u64));
    }

    /// Returns the bytes of all messages, sent and received.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let entries = self.entries();
        let of =
            |way: fn(&MessageBytes) -> u64| entries.messages.iter().map(|(_, message)| way(message)).sum();
        (of(|message| message.sent), of(|message| message.received))
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn end_stage(&mut self) {
        if let Some((at, since)) = self.now.take() {
            self.stages[at].1 += since.elapsed();
        }
    }

    fn count(&mut self, (tag, name): (u16, &'static str), (sent, received): (u64, u64)) {
        match self.messages.iter_mut().find(|(known, _)| *known == tag) {
            Some((_, message)) => {
                message.sent += sent;
                message.received += received;
            }
            None => self.messages.push((tag, MessageBytes::new(name, (sent, received)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::{Channel, HEADER, Message, Unit};

    const NUMBERS: Message<u64> = Message::new(1, "numbers");
    const WORDS: Message<[u8]> = Message::new(2, "words");

    #[test]
    fn frames_are_counted_by_message_once_they_are_accepted() {
        let (mut a, mut b) = Channel::pair();
        a.tx.send(NUMBERS, &[1, 2]).unwrap();
        a.tx.send_bytes(WORDS, b"abc").unwrap();
        a.tx.send(NUMBERS, &[3]).unwrap();
        b.rx.recv(NUMBERS, 2).unwrap();
        // A message other than the expected one.
        assert!(b.rx.recv(NUMBERS, 1).is_err());
        let numbers = |sent, received| MessageBytes::new("numbers", (sent, received));
        let sent = 2 * HEADER as u64 + 24;
        let words = MessageBytes::new("words", (HEADER as u64 + 3, 0));
        let [ours, theirs] = [a, b].map(|side| side.account().clone());
        assert_eq!(Account::messages([&ours]), [numbers(sent, 0), words.clone()]);
        assert_eq!(Account::messages([&theirs]), [numbers(0, HEADER as u64 + 16)]);
        assert_eq!(Account::messages([&ours, &theirs]), [numbers(sent, HEADER as u64 + 16), words]);
        assert_eq!(ours.bytes(), (sent + HEADER as u64 + 3, 0));
    }

    #[test]
    fn turns_of_a_stage_add_up_and_nothing_is_lost_between_stages() {
        let (channel, _) = Channel::pair();
        let start = Instant::now();
        channel.account().begin("one");
        channel.stage("two", Unit::Items, 5);
        std::thread::sleep(Duration::from_millis(20));
        channel.stage("one", Unit::Items, 5);
        let stages = channel.account().stages();
        let took = start.elapsed().as_secs_f64();
        assert_eq!(stages.iter().map(|stage| stage.name).collect::<Vec<_>>(), ["one", "two"]);
        assert!(stages[1].seconds >= 0.02);
        let all: f64 = stages.iter().map(|stage| stage.seconds).sum();
        assert!(all <= took && stages == channel.account().stages(), "{all} {took}");
    }
}
