//! Packing many plain pods at once: which mixes of them on which shapes cost least.
//!
//! Each class of pods gets a value, the least that a pod of it must cost: the dual of the linear relaxation, found by
//! multiplicative weights. Then the shape whose best mix has the most value for its price is taken as often as there
//! are pods for it, until none are left. Values are only a guide: whoever calls compares the price of the result.

use super::vector::Vector;

/// Pods that ask for the same.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) request: Vector,
    pub(super) count: u32,
}

/// A shape that can be bought any number of times.
#[derive(Debug, Clone)]
pub(super) struct Bin {
    pub(super) room: Vector,
    /// Price per hour in millionths.
    pub(super) price: u64,
}

/// A mix of items, and how often it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mix {
    /// Items and how many of each, in the order of the items.
    pub(super) content: Vec<(usize, u32)>,
    pub(super) times: u32,
}

/// Rounds of price finding; the values change by less than a percent after that.
const ROUNDS: u32 = 200;
/// How strongly a round moves the weights.
const STEP: f64 = 0.2;
/// Shapes that are tried for each mix: those that are the cheapest for some item at some time.
const MAX_BINS: usize = 48;

/// Packs all items; none when some item fits no bin.
pub(super) fn pack(
    items: &[Item],
    bins: &[Bin],
    places: usize,
    work: &mut u64,
) -> Option<Vec<Mix>> {
    let problem = Problem::new(items, bins, places)?;
    *work += u64::from(ROUNDS) * (items.len() * problem.bins.len()) as u64 / WORK_RATIO;
    let values = problem.values();
    Some(Filler::new(&problem, &values, items).fill_all(work))
}

/// What a pod of each item must cost at least, in the unit of the prices; none when some item fits no bin.
pub(super) fn values_of(
    items: &[Item],
    bins: &[Bin],
    places: usize,
    work: &mut u64,
) -> Option<Vec<f64>> {
    let problem = Problem::new(items, bins, places)?;
    *work += u64::from(ROUNDS) * (items.len() * problem.bins.len()) as u64 / WORK_RATIO;
    Some(problem.values().items)
}

/// One unit of work is a pod tried on a node, which takes about as long as this many steps here.
const WORK_RATIO: u64 = 16;

/// The items and the bins that are worth looking at, as shares.
struct Problem {
    /// Requests by item and place.
    requests: Vec<Vec<f64>>,
    counts: Vec<f64>,
    bins: Vec<OpenBin>,
}

struct OpenBin {
    room: Vec<f64>,
    price: f64,
    /// Which items fit.
    holds: Vec<bool>,
}

impl Problem {
    fn new(items: &[Item], bins: &[Bin], places: usize) -> Option<Self> {
        let wanted: Vec<usize> = (0..places)
            .filter(|place| items.iter().any(|it| it.request.at(*place) > 0))
            .collect();
        let amounts = |vector: &Vector| {
            wanted
                .iter()
                .map(|place| vector.at(*place) as f64)
                .collect::<Vec<f64>>()
        };
        let mut open: Vec<&Bin> = Vec::new();
        for bin in bins {
            let is_worse = |other: &&Bin| bin.room.fits_in(&other.room) && other.price <= bin.price;
            if !open.iter().any(is_worse) {
                open.retain(|other| !(other.room.fits_in(&bin.room) && bin.price <= other.price));
                open.push(bin);
            }
        }
        let bins = open.iter().map(|bin| OpenBin {
            room: amounts(&bin.room),
            price: bin.price as f64,
            holds: items
                .iter()
                .map(|item| item.request.fits_in(&bin.room))
                .collect(),
        });
        let bins: Vec<OpenBin> = bins.filter(|bin| bin.holds.contains(&true)).collect();
        let all_fit = (0..items.len()).all(|item| bins.iter().any(|bin| bin.holds[item]));
        all_fit.then(|| Self {
            requests: items.iter().map(|item| amounts(&item.request)).collect(),
            counts: items.iter().map(|item| f64::from(item.count)).collect(),
            bins,
        })
    }

    /// The values of the items and the bins that matter.
    fn values(&self) -> Values {
        let places = self.requests.first().map_or(0, Vec::len);
        let mut weights = vec![vec![1.0 / places as f64; places]; self.bins.len()];
        let mut best = Values {
            items: Vec::new(),
            total: -1.0,
            bins: Vec::new(),
        };
        let mut uses = vec![0_u32; self.bins.len()];
        for _ in 0..ROUNDS {
            let (values, cheapest) = self.prices(&weights);
            let total: f64 = values
                .iter()
                .zip(&self.counts)
                .map(|(value, count)| value * count)
                .sum();
            if total > best.total {
                (best.items, best.total) = (values, total);
            }
            let mut loads = vec![vec![0.0; places]; self.bins.len()];
            for (item, bin) in cheapest.iter().enumerate() {
                uses[*bin] += 1;
                for (place, load) in loads[*bin].iter_mut().enumerate() {
                    *load += self.counts[item] * self.share(item, *bin, place);
                }
            }
            for (weights, loads) in weights.iter_mut().zip(&loads) {
                shift(weights, loads);
            }
        }
        let mut by_use: Vec<usize> = (0..self.bins.len()).filter(|bin| uses[*bin] > 0).collect();
        by_use.sort_by_key(|bin| (std::cmp::Reverse(uses[*bin]), *bin));
        by_use.truncate(MAX_BINS);
        best.bins = by_use;
        best
    }

    /// What each item costs in its cheapest bin when each resource has that share of the bin's price.
    fn prices(&self, weights: &[Vec<f64>]) -> (Vec<f64>, Vec<usize>) {
        let unit_price = |bin: &OpenBin, weight: f64, room: f64| bin.price * weight / room.max(1.0);
        let unit_prices: Vec<Vec<f64>> = self
            .bins
            .iter()
            .zip(weights)
            .map(|(bin, weights)| {
                weights
                    .iter()
                    .zip(&bin.room)
                    .map(|(weight, room)| unit_price(bin, *weight, *room))
                    .collect()
            })
            .collect();
        let cheapest = |item: usize| {
            let mut least = (f64::INFINITY, 0);
            for (idx, units) in unit_prices
                .iter()
                .enumerate()
                .filter(|(idx, _)| self.bins[*idx].holds[item])
            {
                let price: f64 = self.requests[item]
                    .iter()
                    .zip(units)
                    .map(|(amount, unit)| amount * unit)
                    .sum();
                if price < least.0 {
                    least = (price, idx);
                }
            }
            least
        };
        (0..self.requests.len()).map(cheapest).unzip()
    }

    fn share(&self, item: usize, bin: usize, place: usize) -> f64 {
        self.requests[item][place] / self.bins[bin].room[place].max(1.0)
    }
}

/// Moves weight to the resources of which more was asked for.
fn shift(weights: &mut [f64], loads: &[f64]) {
    let most = loads.iter().copied().fold(0.0, f64::max);
    if most <= 0.0 {
        return;
    }
    let mut sum = 0.0;
    for (weight, load) in weights.iter_mut().zip(loads) {
        *weight *= 1.0 + STEP * (load / most - 1.0) + 1e-9;
        sum += *weight;
    }
    for weight in weights {
        *weight /= sum;
    }
}

impl Rule {
    fn takes(self, request: &[f64], free: &[f64]) -> f64 {
        let shares = request
            .iter()
            .zip(free)
            .map(|(wanted, free)| wanted / free.max(1.0));
        match self {
            Self::Sum => shares.sum(),
            Self::Largest => shares.fold(0.0, f64::max),
            Self::Squares => shares.map(|share| share * share).sum::<f64>().sqrt(),
        }
    }
}

/// How much an item takes of what is left, in one number. None of them is best everywhere.
#[derive(Clone, Copy)]
enum Rule {
    Sum,
    Largest,
    Squares,
}

const RULES: [Rule; 3] = [Rule::Sum, Rule::Largest, Rule::Squares];

struct Values {
    items: Vec<f64>,
    total: f64,
    bins: Vec<usize>,
}

/// Fills bins while there are items.
struct Filler<'a> {
    problem: &'a Problem,
    values: &'a Values,
    left: Vec<u32>,
}

/// A mix for a bin and its value for the price.
#[derive(Clone)]
struct Candidate {
    content: Vec<(usize, u32)>,
    worth: f64,
}

impl<'a> Filler<'a> {
    fn new(problem: &'a Problem, values: &'a Values, items: &[Item]) -> Self {
        Self {
            problem,
            values,
            left: items.iter().map(|item| item.count).collect(),
        }
    }

    fn fill_all(mut self, work: &mut u64) -> Vec<Mix> {
        let mut candidates: Vec<Option<Candidate>> = vec![None; self.values.bins.len()];
        let mut mixes = Vec::new();
        while self.left.iter().any(|left| *left > 0) {
            for (idx, bin) in self.values.bins.iter().enumerate() {
                if candidates[idx]
                    .as_ref()
                    .is_none_or(|it| self.times(it) == 0)
                {
                    candidates[idx] = Some(self.best_mix(*bin, work));
                }
            }
            let best = candidates
                .iter()
                .flatten()
                .filter(|it| !it.content.is_empty());
            let Some(best) = best.max_by(|a, b| a.worth.total_cmp(&b.worth)).cloned() else {
                break;
            };
            let times = self.times(&best);
            for (item, count) in &best.content {
                self.left[*item] -= count * times;
            }
            mixes.push(Mix {
                content: best.content,
                times,
            });
        }
        mixes
    }

    fn times(&self, mix: &Candidate) -> u32 {
        mix.content
            .iter()
            .map(|(item, count)| self.left[*item] / count)
            .min()
            .unwrap_or(0)
    }

    fn best_mix(&self, bin: usize, work: &mut u64) -> Candidate {
        let [first, second, third] = RULES.map(|rule| self.mix_by(bin, rule, work));
        let better = |a: Candidate, b: Candidate| if b.worth > a.worth { b } else { a };
        better(better(first, second), third)
    }

    /// The item that has the most value for what it takes of what is left.
    fn best_item(
        &self,
        bin: &OpenBin,
        free: &[f64],
        content: &[u32],
        rule: Rule,
    ) -> Option<(usize, f64)> {
        let mut best: Option<(usize, f64)> = None;
        for (item, request) in self.problem.requests.iter().enumerate() {
            let fits = bin.holds[item]
                && request
                    .iter()
                    .zip(free)
                    .all(|(wanted, free)| wanted <= free);
            if content[item] >= self.left[item] || !fits {
                continue;
            }
            let worth = self.values.items[item] / rule.takes(request, free).max(f64::MIN_POSITIVE);
            if best.is_none_or(|(_, most)| worth > most) {
                best = Some((item, worth));
            }
        }
        best
    }

    /// Fills one bin, item by item.
    fn mix_by(&self, bin: usize, rule: Rule, work: &mut u64) -> Candidate {
        let open = &self.problem.bins[bin];
        let mut free = open.room.clone();
        let mut content = vec![0_u32; self.left.len()];
        let mut value = 0.0;
        loop {
            *work += self.left.len() as u64 / WORK_RATIO + 1;
            let best = self.best_item(open, &free, &content, rule);
            let Some((item, _)) = best else { break };
            content[item] += 1;
            value += self.values.items[item];
            for (free, wanted) in free.iter_mut().zip(&self.problem.requests[item]) {
                *free -= wanted;
            }
        }
        let content = content
            .into_iter()
            .enumerate()
            .filter(|(_, count)| *count > 0)
            .collect();
        Candidate {
            content,
            worth: value / open.price.max(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::Resources;
    use crate::schedule::vector::ResourceIndex;

    fn vector(cpu: i64, mem: i64) -> Vector {
        ResourceIndex::default().vector(&Resources::of(cpu, mem))
    }

    fn pack_all(items: &[(i64, i64, u32)], bins: &[(i64, i64, u64)]) -> Option<Vec<Mix>> {
        let items: Vec<Item> = items
            .iter()
            .map(|(cpu, mem, count)| Item {
                request: vector(*cpu, *mem),
                count: *count,
            })
            .collect();
        let bins: Vec<Bin> = bins
            .iter()
            .map(|(cpu, mem, price)| Bin {
                room: vector(*cpu, *mem),
                price: *price,
            })
            .collect();
        pack(&items, &bins, 4, &mut 0)
    }

    #[test]
    fn pods_that_complement_each_other_share_a_bin() {
        let mixes = pack_all(
            &[(3, 1, 10), (1, 3, 10)],
            &[(4, 4, 100), (4, 1, 60), (1, 4, 60)],
        )
        .unwrap();
        assert_eq!(
            mixes,
            [Mix {
                content: vec![(0, 1), (1, 1)],
                times: 10
            }]
        );
    }

    #[test]
    fn every_item_is_packed_once() {
        let mixes = pack_all(
            &[(3, 1, 7), (1, 3, 5), (2, 2, 3)],
            &[(8, 8, 150), (4, 4, 100)],
        )
        .unwrap();
        let mut counts = [0; 3];
        for mix in &mixes {
            for (item, count) in &mix.content {
                counts[*item] += count * mix.times;
            }
        }
        assert_eq!(counts, [7, 5, 3]);
    }

    #[test]
    fn what_fits_nowhere_is_not_packed() {
        assert_eq!(pack_all(&[(9, 1, 1)], &[(8, 8, 150)]), None);
    }
}
