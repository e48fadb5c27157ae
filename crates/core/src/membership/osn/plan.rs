//! The plan: all sizes of a run, derived from public sizes.

use super::{FRAME, K};
use crate::channel::{Channel, HEADER, Unit};
use crate::error::Result;
use crate::hashing::blocks::Blocks;
use crate::hashing::cuckoo::CHOICES;
use crate::okvs::Value;
use crate::oprf::OprfCost;
use crate::oprf::bins::{FromVole, Query};
use crate::oprf::programmable::Bounds;
use crate::ot::Security;
use crate::ot::extension::{self, setup_bytes};
use crate::params::{share, value_bits};
use crate::switching::{BenesNetwork, Switching};
use crate::vole::silent::Silent;
use crate::work::{Primitive, Step, Work};

/// All sizes of a run, derived from public sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    pub(super) blocks: Blocks,
    /// Items of R.
    pub(super) n_y: usize,
    /// Bytes of s, w, B, D, z and of a tag.
    pub(super) bytes: usize,
}

impl Plan {
    /// The plan with about the least traffic for sets of these sizes. The caller sends `beside` further bytes per tested bin.
    /// The probability that any item's bit is wrong is at most 2^-`exponent`, and so is the probability that items must be
    /// placed again.
    pub fn new(exponent: u32, n_y: usize, n_x: usize, beside: usize) -> Plan {
        // Undetected errors: w equals s by chance, or two tags are equal by chance. Each item of S is compared once.
        let bytes = value_bits(share(exponent, 2), n_x).div_ceil(8) as usize;
        let cost = |blocks: &Blocks| {
            let switches =
                BenesNetwork::count(blocks.levels, blocks.items) * (128_usize.div_ceil(K) + 8 * bytes) / 8;
            let bin = 16 + bytes + bytes / 4;
            (blocks.number * (switches + blocks.bins() * bin + blocks.items * (16 + bytes + beside))) as u64
        };
        Plan { blocks: Blocks::best(exponent, n_x, cost), n_y, bytes }
    }

    /// The number of tests.
    pub fn slots(&self) -> usize {
        self.blocks.all_items()
    }

    /// The bounds of the programmable OPRF: a query in each bin; each item in its three bins, and the bottom item in all bins.
    pub(super) fn bounds(&self) -> Bounds {
        let bins = self.blocks.all_bins();
        Bounds { receiver: bins, sender: CHOICES * self.n_y + bins, bytes: self.bytes }
    }

    /// Announces the stage up to the hint: the queries and the hint.
    pub(super) fn announce(&self, ch: &Channel) {
        let bounds = self.bounds();
        ch.stage("matching", Unit::Bytes, size_of::<Query>() * bounds.receiver + bounds.traffic());
    }

    /// The network of a block.
    pub(super) fn network(&self) -> Result<BenesNetwork> {
        BenesNetwork::new(self.blocks.levels, self.blocks.items)
    }

    /// The networks of all blocks.
    pub(super) fn switching(&self) -> Result<Switching> {
        Ok(Switching { network: self.network()?, blocks: self.blocks.number, bytes: self.bytes })
    }

    /// The number of switches in all blocks.
    pub fn switches(&self) -> usize {
        self.blocks.number * BenesNetwork::count(self.blocks.levels, self.blocks.items)
    }

    /// The cost of the tests, if the items of S can be placed at the first attempt. Pairs are for R and S.
    ///
    /// # Errors
    /// [`crate::error::Error::Bug`], never.
    pub(crate) fn cost(&self) -> Result<OprfCost> {
        let (bounds, slots) = (self.bounds(), self.slots());
        let vole = || FromVole::new(Silent::default());
        let (opprf, compared) = (vole().cost(bounds.receiver, bounds.sender), vole().cost(slots, slots));
        let switching = self.switching()?;
        let (switched, ots) = (switching.traffic(K), setup_bytes(K, Security::SemiHonest));
        // The sizes, the coin toss, and whether all items fit.
        let toss = [24 + 32 + 32 + 1 + 4 * HEADER, 32 + 1 + 2 * HEADER];
        let tags = (slots * self.bytes + HEADER * slots.div_ceil(FRAME)) as u64;
        let [toss, switched] = [toss, [ots.1 + switched[1], ots.0 + switched[0]]]
            .map(|[to_sender, to_receiver]| Step::default().sends(to_sender as u64, to_receiver as u64));
        let switches =
            Work::of(Primitive::Switch, switching.switches()) + Work::of(Primitive::BaseOt, extension::WIDTH);
        // S is the receiver of the first OPRF.
        let programmed = opprf.steps.iter().copied().chain(bounds.steps()).map(Step::swapped);
        let steps = [toss].into_iter().chain(programmed);
        let steps =
            steps.chain([Step { work: [switches; 2], ..switched }]).chain(compared.steps.iter().copied());
        let steps = steps.chain([Step::both(Work::of(Primitive::Tag, slots)).sends(0, tags)]);
        // R: s, and the bins of its items with the values programmed there; then s and B; then B and the values to compare. S:
        // its table and the picked bins in order, throughout; with them the choices, the queries, F and the hint; then w and D;
        // then z and the comparison.
        let (bins, of_hint) = (bounds.receiver, bounds.held());
        let points = 4 * CHOICES * self.n_y;
        let receiver = (16 * bins + points + opprf.held[1].max(of_hint[1]))
            .max(16 * bins + switching.held()[1])
            .max(16 * slots + compared.held[0]);
        let picked = 4 * bins + 4 * slots;
        let sender = (picked + switching.switches() + 16 * bins + opprf.held[0].max(32 * bins + of_hint[0]))
            .max(picked + 16 * bins + switching.held()[0])
            .max(picked + 16 * slots + compared.held[1]);
        Ok(OprfCost {
            steps: steps.collect(),
            rounds: self.rounds(&opprf, &compared),
            held: [receiver, sender],
            ..opprf
        })
    }

    /// The number of rounds. The coin toss takes four. The first OPRF follows S's last message of the toss, and R's hint
    /// follows S's queries. With the hint R begins the OTs of the switches; S answers with the corrections, and R with the
    /// differences, after which the comparison begins.
    fn rounds(&self, opprf: &OprfCost, compared: &OprfCost) -> usize {
        let (toss, hint, switching, tags) = (4, 1, 2, 1);
        toss + opprf.rounds + hint + switching + compared.rounds + tags
    }

    /// The value with zeros after its first `bytes` bytes.
    pub(super) fn cut(&self, value: &Value) -> Value {
        std::array::from_fn(|i| if i < self.bytes { value[i] } else { 0 })
    }
}
