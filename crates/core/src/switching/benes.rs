//! A permutation network (Beneš; with the saving of Waksman, "A Permutation Network", J. ACM 1968), restricted to the wanted
//! outputs.
//!
//! A network of 2^b positions has 2 b - 1 layers. In layer d = 0..b-1, and in layer 2 b - 2 - d, a switch joins two positions
//! at distance 2^(b-1-d). It leaves their values in place, or exchanges them. The two layers are the first and the last of 2^d
//! networks of 2^(b-d) positions. Between them, the upper positions of the pairs of each network form a network of half its
//! size, and the lower ones another.
//!
//! Two kinds of switches are left out of the layers after the middle. The first switch of each network always goes straight:
//! exchanging the two halves inside compensates. And only the first outputs are wanted. Output i is at the position with the
//! bits of i reversed. So each inner network needs only its own first outputs, and the switches of its other outputs have no
//! visible effect.
//!
//! The switches are public, and the choices are secret. Routing reads and writes addresses that depend on the permutation.

use crate::error::{Error, Result};
use crate::secret::Secrets;

/// A permutation network, restricted to its first outputs.
pub struct BenesNetwork {
    levels: u32,
    outputs: usize,
    switches: Vec<Switch>,
}

/// A switch of a network.
#[derive(Clone, Copy)]
pub(super) struct Switch {
    /// Its number among the switches of the whole network.
    number: u32,
    /// The two positions.
    pub(super) pair: [u32; 2],
}

impl BenesNetwork {
    /// Builds the network of 2^`levels` positions whose first `outputs` outputs are wanted.
    ///
    /// # Errors
    /// [`Error::Bug`] for fewer than one level, more than 24, or more outputs than positions.
    pub fn new(levels: u32, outputs: usize) -> Result<BenesNetwork> {
        if !(1..=24).contains(&levels) || outputs > 1 << levels {
            return Err(Error::bug(format!("a network of {levels} levels with {outputs} outputs")));
        }
        let mut network = BenesNetwork { levels, outputs, switches: Vec::new() };
        network.switches = network.all().filter(|switch| network.is_wanted(switch)).collect();
        Ok(network)
    }

    /// Counts the switches of a network without building it.
    pub fn count(levels: u32, outputs: usize) -> usize {
        let size = 1 << levels;
        // After the middle, networks of all sizes but the smallest have their wanted pairs, without the first.
        let behind = (2..=levels).map(|of| {
            let networks = size >> of;
            networks * outputs.div_ceil(networks).div_ceil(2).saturating_sub(1)
        });
        levels as usize * (size / 2) + behind.sum::<usize>()
    }

    /// The number of positions.
    pub fn size(&self) -> usize {
        1 << self.levels
    }

    /// The number of outputs that are wanted.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// The number of switches.
    pub fn switches(&self) -> usize {
        self.switches.len()
    }

    /// The switches in their order.
    pub(super) fn list(&self) -> &[Switch] {
        &self.switches
    }

    /// The position of an output.
    pub(super) fn place(&self, output: usize) -> usize {
        reversed(output, self.levels)
    }

    /// The number of switches in a layer of the whole network.
    fn in_layer(&self) -> usize {
        self.size() / 2
    }

    fn layers(&self) -> usize {
        2 * self.levels as usize - 1
    }

    /// The binary logarithm of the distance between the positions of a pair in this layer.
    fn distance(&self, layer: usize) -> u32 {
        let layer = layer.min(self.layers() - 1 - layer) as u32;
        self.levels - 1 - layer
    }

    /// The switches of the whole network.
    fn all(&self) -> impl Iterator<Item = Switch> + use<> {
        let (in_layer, layers, levels) = (self.in_layer(), self.layers(), self.levels);
        let network = BenesNetwork { levels, outputs: 0, switches: Vec::new() };
        (0..layers * in_layer).map(move |number| {
            let distance = network.distance(number / in_layer);
            let (network, at) = ((number % in_layer) >> distance, number % in_layer % (1 << distance));
            let first = (network << (distance + 1)) + at;
            Switch { number: number as u32, pair: [first as u32, (first + (1 << distance)) as u32] }
        })
    }

    fn is_wanted(&self, switch: &Switch) -> bool {
        let layer = switch.number as usize / self.in_layer();
        if layer < self.levels as usize {
            return true;
        }
        // In each network, whose size is twice the distance, the wanted pairs are the first ones in bit-reversed order.
        let distance = self.distance(layer);
        let at = switch.pair[0] as usize % (1 << distance);
        let networks = self.size() >> (distance + 1);
        let pairs = self.outputs.div_ceil(networks).div_ceil(2);
        at != 0 && reversed(at, distance) < pairs
    }

    /// Returns the choices of all switches, whether each exchanges its values, with which each wanted output i is input
    /// `from[i]`. The inputs without a wanted output come last in `from`, in any order.
    ///
    /// # Errors
    /// [`Error::Bug`] if `from` is not a permutation of all inputs.
    pub fn route(&self, from: &[u32]) -> Result<Secrets<bool>> {
        let n = self.size();
        let mut seen = Secrets::<bool>::zeros(n);
        from.iter().for_each(|&input| {
            if let Some(seen) = seen.get_mut(input as usize) {
                *seen = true;
            }
        });
        if from.len() != n || !seen.iter().all(|&seen| seen) {
            return Err(Error::bug(format!("no permutation of {n} inputs")));
        }
        let mut wires = Secrets::<u32>::zeros(n);
        from.iter().enumerate().for_each(|(output, &input)| wires[self.place(output)] = input);
        let mut choices = Secrets::<bool>::zeros(self.layers() * self.in_layer());
        let (before, behind) = choices.split_at_mut(self.levels as usize * self.in_layer());
        let mut inside = Secrets::<u32>::zeros(n);
        let mut inverse = Secrets::<u32>::zeros(n);
        for layer in 0..self.levels as usize - 1 {
            let half = 1 << self.distance(layer);
            let mirrored = self.levels as usize - 2 - layer;
            let ins = before[layer * self.in_layer()..][..self.in_layer()].chunks_exact_mut(half);
            let outs = behind[mirrored * self.in_layer()..][..self.in_layer()].chunks_exact_mut(half);
            let networks = wires.chunks_exact(2 * half).zip(inside.chunks_exact_mut(2 * half));
            for ((wires, inside), (ins, outs)) in networks.zip(ins.zip(outs)) {
                split(wires, inside, &mut inverse, [ins, outs]);
            }
            (wires, inside) = (inside, wires);
        }
        let middle = &mut before[(self.levels as usize - 1) * self.in_layer()..];
        middle.iter_mut().zip(wires.as_chunks::<2>().0).for_each(|(choice, pair)| *choice = pair[0] == 1);
        Ok(Secrets::from(self.switches.iter().map(|s| choices[s.number as usize]).collect::<Vec<_>>()))
    }
}

/// The number with its lowest `bits` bits in reverse.
fn reversed(number: usize, bits: u32) -> usize {
    if bits == 0 { 0 } else { number.reverse_bits() >> (usize::BITS - bits) }
}

/// Routes the first and the last layer of a network that takes `wires[i]` to position i, and writes the permutations of its
/// upper and its lower half to `inside`. `inverse` is scratch space for at least as many numbers.
fn split(wires: &[u32], inside: &mut [u32], inverse: &mut [u32], [ins, outs]: [&mut [bool]; 2]) {
    let half = ins.len();
    wires.iter().enumerate().for_each(|(output, &input)| inverse[input as usize] = output as u32);
    // Pairs of outputs that have a place in the inner networks. Each new cycle starts with a straight pair.
    let mut done = Secrets::<bool>::zeros(half);
    for pair in 0..half {
        let mut output = pair;
        while !done[output % half] {
            // This output comes through the upper half, and its partner through the lower one.
            done[output % half] = true;
            outs[output % half] = output >= half;
            let input = wires[output] as usize;
            ins[input % half] = input >= half;
            inside[output % half] = (input % half) as u32;
            // The partner of its input goes through the lower half, too.
            let below = (input + half) % (2 * half);
            let of_below = inverse[below] as usize;
            inside[half + of_below % half] = (below % half) as u32;
            // So the partner of that partner's output comes through the upper half.
            output = (of_below + half) % (2 * half);
        }
    }
}

#[cfg(test)]
#[path = "benes_tests.rs"]
mod tests;
