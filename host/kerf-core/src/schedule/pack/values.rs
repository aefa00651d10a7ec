//! What each item must cost at least: the dual of the linear relaxation, by multiplicative weights.

use super::{Bin, Item, WORK_RATIO};

/// Rounds of price finding; the values change by less than a percent after that.
const ROUNDS: u32 = 200;
/// How strongly a round moves the weights.
const STEP: f64 = 0.2;
/// This share of a bin's first weights is spread evenly: what has no weight never gets any.
const EVEN: f64 = 0.02;
/// Shapes that are tried for each mix: those that are the cheapest for some item at some time.
const MAX_BINS: usize = 48;

/// The items and the bins that are worth looking at, as shares.
pub(super) struct Problem {
    places: usize,
    /// Requests by item and place, and the same by place and item.
    by_item: Vec<f64>,
    by_place: Vec<f64>,
    counts: Vec<f64>,
    bins: Vec<OpenBin>,
}

struct OpenBin {
    room: Vec<f64>,
    price: f64,
    /// By item: 0 where it fits, infinity where not. Added to prices.
    refusal: Vec<f64>,
}

/// What the items are worth, and which bins were the cheapest for some.
pub(super) struct Values {
    pub(super) items: Vec<f64>,
    total: f64,
    pub(super) bins: Vec<usize>,
}

impl Problem {
    /// None when some item fits no bin.
    pub(super) fn new(items: &[Item], bins: &[Bin], places: usize) -> Option<Self> {
        let wanted: Vec<usize> = (0..places)
            .filter(|place| items.iter().any(|it| it.request.at(*place) > 0))
            .collect();
        let amount = |vector: &super::Vector, place: usize| vector.at(place) as f64;
        let mut open: Vec<&Bin> = Vec::new();
        for bin in bins {
            let is_worse = |other: &&Bin| bin.room.fits_in(&other.room) && other.price <= bin.price;
            if !open.iter().any(is_worse) {
                open.retain(|other| !(other.room.fits_in(&bin.room) && bin.price <= other.price));
                open.push(bin);
            }
        }
        let refusal = |item: &Item, bin: &Bin| match item.request.fits_in(&bin.room) {
            true => 0.0,
            false => f64::INFINITY,
        };
        let bins = open.iter().map(|bin| OpenBin {
            room: wanted
                .iter()
                .map(|place| amount(&bin.room, *place))
                .collect(),
            price: bin.price as f64,
            refusal: items.iter().map(|item| refusal(item, bin)).collect(),
        });
        let bins: Vec<OpenBin> = bins.filter(|bin| bin.refusal.contains(&0.0)).collect();
        let all_fit = (0..items.len()).all(|item| bins.iter().any(|bin| bin.refusal[item] == 0.0));
        let by_item = items
            .iter()
            .flat_map(|it| wanted.iter().map(|place| amount(&it.request, *place)));
        let by_place = wanted
            .iter()
            .flat_map(|place| items.iter().map(|it| amount(&it.request, *place)));
        all_fit.then(|| Self {
            places: wanted.len(),
            by_item: by_item.collect(),
            by_place: by_place.collect(),
            counts: items.iter().map(|item| f64::from(item.count)).collect(),
            bins,
        })
    }

    /// How many kinds of resources matter.
    pub(super) fn places(&self) -> usize {
        self.places
    }

    pub(super) fn requests_of(&self, item: usize) -> &[f64] {
        &self.by_item[item * self.places..(item + 1) * self.places]
    }

    pub(super) fn room_of(&self, bin: usize) -> &[f64] {
        &self.bins[bin].room
    }

    pub(super) fn price_of(&self, bin: usize) -> f64 {
        self.bins[bin].price
    }

    pub(super) fn holds(&self, bin: usize, item: usize) -> bool {
        self.bins[bin].refusal[item] == 0.0
    }

    /// The values of the items and the bins that matter, from equal weights: that looks at many bins, which is what
    /// packing wants.
    pub(super) fn values(&self, work: &mut u64) -> Values {
        let even = vec![1.0 / self.places as f64; self.places];
        self.values_from(vec![even; self.bins.len()], work)
    }

    /// The values of the items alone, as close to what they really cost as we can say.
    ///
    /// From equal weights, hundreds of like bins would have to find out one by one which resource is scarce, and what is
    /// found after so many rounds can be a third too low. So each bin starts from what resources are worth to all items
    /// together, and the better of both is taken: both are bounds from below.
    pub(super) fn closest_values(&self, work: &mut u64) -> Vec<f64> {
        let scarcity = self.scarcity();
        let bins = self.bins.iter();
        let weights = bins.map(|bin| first_weights(bin, &scarcity)).collect();
        let from_scarcity = self.values_from(weights, work);
        let from_even = self.values(work);
        match from_scarcity.total >= from_even.total {
            true => from_scarcity.items,
            false => from_even.items,
        }
    }

    fn values_from(&self, weights: Vec<Vec<f64>>, work: &mut u64) -> Values {
        let mut search = Search::new(self, weights);
        let mut best = Values {
            items: Vec::new(),
            total: -1.0,
            bins: Vec::new(),
        };
        for _ in 0..ROUNDS {
            search.find_cheapest(work);
            let total: f64 = search
                .least
                .iter()
                .zip(&self.counts)
                .map(|(value, count)| value * count)
                .sum();
            if total > best.total {
                best.items.clone_from(&search.least);
                best.total = total;
            }
            search.move_weights();
        }
        best.bins = search.most_used();
        best
    }

    /// What a unit of each resource is worth when all items together are bought in the bins that sell it cheapest.
    fn scarcity(&self) -> Vec<f64> {
        let demand: Vec<f64> = (0..self.places)
            .map(|place| {
                let requests = (0..self.counts.len()).map(|item| self.requests_of(item)[place]);
                requests
                    .zip(&self.counts)
                    .map(|(it, count)| it * count)
                    .sum()
            })
            .collect();
        let mut weights = vec![1.0 / self.places as f64; self.places];
        let mut best = (-1.0, Vec::new());
        let mut loads = vec![0.0; self.places];
        for _ in 0..ROUNDS {
            // Weights are shares of the demand's whole value, so that no unit matters.
            let per_unit = |place: usize| weights[place] / demand[place].max(1.0);
            let share = |bin: &OpenBin| -> f64 {
                let rooms = bin.room.iter().enumerate();
                rooms.map(|(place, room)| room * per_unit(place)).sum()
            };
            let cost = |bin: &OpenBin| bin.price / share(bin).max(f64::MIN_POSITIVE);
            let costs = self.bins.iter().map(|bin| (cost(bin), bin));
            let Some((total, cheapest)) = costs.min_by(|a, b| a.0.total_cmp(&b.0)) else {
                break;
            };
            if total > best.0 {
                let worth = (0..self.places).map(|place| total * per_unit(place));
                best = (total, worth.collect());
            }
            for (place, load) in loads.iter_mut().enumerate() {
                *load = demand[place] / cheapest.room[place].max(1.0);
            }
            shift(&mut weights, &mut loads);
        }
        best.1
    }

    /// What each item costs in the bin when each resource has that share of the bin's price.
    fn prices(&self, bin: usize, weights: &[f64], prices: &mut Vec<f64>) {
        let OpenBin {
            room,
            price,
            refusal,
        } = &self.bins[bin];
        prices.clone_from(refusal);
        let items = prices.len();
        for (place, (weight, room)) in weights.iter().zip(room).enumerate() {
            let unit = price * weight / room.max(1.0);
            let requests = &self.by_place[place * items..(place + 1) * items];
            for (price, wanted) in prices.iter_mut().zip(requests) {
                *price += wanted * unit;
            }
        }
    }
}

/// The state of the search. Only bins that were the cheapest for some item ever change their prices, and those are few: of
/// the others the least price per item is all that is needed.
struct Search<'p> {
    problem: &'p Problem,
    weights: Vec<Vec<f64>>,
    /// By bin: how often it was the cheapest for an item.
    uses: Vec<u32>,
    /// By bin: the prices of all items with the weights as they are.
    prices: Vec<Vec<f64>>,
    /// Bins that were used, and whether their weights moved since their prices were found.
    used: Vec<(usize, bool)>,
    /// By item: the least price among the bins that were never used, and which bin has it.
    unused_least: Vec<(f64, usize)>,
    least: Vec<f64>,
    cheapest: Vec<usize>,
    loads: Vec<Vec<f64>>,
}

impl<'p> Search<'p> {
    fn new(problem: &'p Problem, weights: Vec<Vec<f64>>) -> Self {
        let (places, items) = (problem.places, problem.counts.len());
        let mut prices = vec![Vec::new(); problem.bins.len()];
        for (bin, prices) in prices.iter_mut().enumerate() {
            problem.prices(bin, &weights[bin], prices);
        }
        let mut search = Self {
            problem,
            loads: vec![vec![0.0; places]; problem.bins.len()],
            uses: vec![0; problem.bins.len()],
            weights,
            prices,
            used: Vec::new(),
            unused_least: vec![(f64::INFINITY, 0); items],
            least: Vec::new(),
            cheapest: Vec::new(),
        };
        for item in 0..items {
            search.find_unused_least(item);
        }
        search
    }

    fn find_unused_least(&mut self, item: usize) {
        let mut least = (f64::INFINITY, usize::MAX);
        let unused = self.prices.iter().enumerate();
        for (bin, prices) in unused.filter(|(bin, _)| self.uses[*bin] == 0) {
            if prices[item] < least.0 {
                least = (prices[item], bin);
            }
        }
        self.unused_least[item] = least;
    }

    /// Finds the cheapest bin of each item; ties by the bins' order.
    fn find_cheapest(&mut self, work: &mut u64) {
        let items = self.unused_least.len();
        *work += ((self.used.len() + 1) * items) as u64 / WORK_RATIO;
        self.least.clear();
        self.least.extend(self.unused_least.iter().map(|it| it.0));
        self.cheapest.clear();
        self.cheapest
            .extend(self.unused_least.iter().map(|it| it.1));
        for (bin, has_moved) in &mut self.used {
            let prices = &mut self.prices[*bin];
            if std::mem::take(has_moved) {
                self.problem.prices(*bin, &self.weights[*bin], prices);
            }
            let all = self.least.iter_mut().zip(&mut self.cheapest);
            for ((least, cheapest), price) in all.zip(prices) {
                let is_less = match *bin < *cheapest {
                    true => *price <= *least,
                    false => *price < *least,
                };
                *least = if is_less { *price } else { *least };
                *cheapest = if is_less { *bin } else { *cheapest };
            }
        }
    }

    /// Moves the weights of the bins that some item chose.
    fn move_weights(&mut self) {
        let problem = self.problem;
        for (item, bin) in self.cheapest.iter().enumerate() {
            if self.uses[*bin] == 0 {
                self.used.push((*bin, false));
            }
            self.uses[*bin] += 1;
            let room = &problem.bins[*bin].room;
            let requests = problem.requests_of(item).iter().zip(room);
            for (load, (wanted, room)) in self.loads[*bin].iter_mut().zip(requests) {
                *load += problem.counts[item] * (wanted / room.max(1.0));
            }
        }
        for (bin, has_moved) in &mut self.used {
            *has_moved |= shift(&mut self.weights[*bin], &mut self.loads[*bin]);
        }
        for item in 0..self.unused_least.len() {
            let (_, bin) = self.unused_least[item];
            if self.uses.get(bin).is_some_and(|uses| *uses > 0) {
                self.find_unused_least(item);
            }
        }
    }

    fn most_used(&self) -> Vec<usize> {
        let mut bins: Vec<usize> = self.used.iter().map(|it| it.0).collect();
        bins.sort_by_key(|bin| (std::cmp::Reverse(self.uses[*bin]), *bin));
        bins.truncate(MAX_BINS);
        bins
    }
}

/// How a bin's price is shared by its resources when units of them are worth that much.
fn first_weights(bin: &OpenBin, worth: &[f64]) -> Vec<f64> {
    let shares: Vec<f64> = bin
        .room
        .iter()
        .zip(worth)
        .map(|(room, it)| room * it)
        .collect();
    let sum: f64 = shares.iter().sum();
    let even = 1.0 / shares.len() as f64;
    let weights = shares.iter().map(|share| match sum > 0.0 {
        true => (1.0 - EVEN) * share / sum + EVEN * even,
        false => even,
    });
    weights.collect()
}

/// Moves weight to the resources of which more was asked for, and clears the loads. Says whether anything moved.
fn shift(weights: &mut [f64], loads: &mut [f64]) -> bool {
    let most = loads.iter().copied().fold(0.0, f64::max);
    if most <= 0.0 {
        return false;
    }
    let mut sum = 0.0;
    for (weight, load) in weights.iter_mut().zip(loads) {
        *weight *= 1.0 + STEP * (*load / most - 1.0) + 1e-9;
        sum += *weight;
        *load = 0.0;
    }
    for weight in weights {
        *weight /= sum;
    }
    true
}
