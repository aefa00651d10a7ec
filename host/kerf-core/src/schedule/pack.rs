//! Packing many plain pods at once: which mixes of them on which shapes cost least.
//!
//! Each class of pods gets a value, the least that a pod of it must cost: the dual of the linear relaxation, found by
//! multiplicative weights. Then the shape whose best mix has the most value for its price is taken as often as there
//! are pods for it, until none are left. Values are only a guide: whoever calls compares the price of the result.

mod values;

use super::vector::Vector;
use values::{Problem, Values};

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

/// One unit of work is a pod tried on a node, which takes about as long as this many steps here.
const WORK_RATIO: u64 = 16;

/// Packs all items; none when some item fits no bin.
pub(super) fn pack(
    items: &[Item],
    bins: &[Bin],
    places: usize,
    work: &mut u64,
) -> Option<Vec<Mix>> {
    let problem = Problem::new(items, bins, places)?;
    let values = problem.values(work);
    // Loops over a number of places that the compiler knows are several times as fast.
    Some(match problem.places() {
        0..=4 => Filler::<4>::new(&problem, &values, items).fill_all(work),
        5..=8 => Filler::<8>::new(&problem, &values, items).fill_all(work),
        9..=PLACES_MAX => Filler::<PLACES_MAX>::new(&problem, &values, items).fill_all(work),
        _ => return None,
    })
}

/// Pods that ask for more kinds of resources than this together are not packed anew.
const PLACES_MAX: usize = 32;

/// What a pod of each item must cost at least, in the unit of the prices; none when some item fits no bin.
pub(super) fn values_of(
    items: &[Item],
    bins: &[Bin],
    places: usize,
    work: &mut u64,
) -> Option<Vec<f64>> {
    let problem = Problem::new(items, bins, places)?;
    Some(problem.closest_values(work))
}

/// How much an item takes of what is left, in one number. None of them is best everywhere.
#[derive(Clone, Copy)]
enum Rule {
    Sum,
    Largest,
    Squares,
}

const RULES: [Rule; 3] = [Rule::Sum, Rule::Largest, Rule::Squares];

impl Rule {
    /// Value and taking, such that an item is better than another when the quotient of the two is larger. `per_free` is
    /// one by what is left.
    #[inline]
    fn weigh<const P: usize>(self, item: &Open<P>, per_free: &[f64; P]) -> (f64, f64) {
        let mut taken = 0.0;
        for (wanted, per_free) in item.request.iter().zip(per_free) {
            let share = wanted * per_free;
            match self {
                Self::Sum => taken += share,
                Self::Largest => taken = f64::max(taken, share),
                Self::Squares => taken += share * share,
            }
        }
        let value = match self {
            Self::Sum | Self::Largest => item.value,
            // Without the root, which would not change the order.
            Self::Squares => item.value * item.value,
        };
        (value, taken.max(f64::MIN_POSITIVE))
    }
}

/// An item of which some are left.
#[derive(Debug, Clone, Copy)]
struct Open<const P: usize> {
    request: [f64; P],
    value: f64,
    item: usize,
    left: u32,
}

/// Fills bins while there are items.
struct Filler<'a, const P: usize> {
    problem: &'a Problem,
    values: &'a Values,
    left: Vec<u32>,
    open: Vec<Open<P>>,
    /// The items that are looked at for one bin; kept for its room only.
    fitting: Vec<Open<P>>,
    counts: Vec<u32>,
}

/// A mix for a bin and its value for the price.
struct Candidate {
    bin: usize,
    content: Vec<(usize, u32)>,
    worth: f64,
}

impl<'a, const P: usize> Filler<'a, P> {
    fn new(problem: &'a Problem, values: &'a Values, items: &[Item]) -> Self {
        let open = items.iter().enumerate().map(|(item, it)| Open {
            request: padded(problem.requests_of(item), 0.0),
            value: values.items[item],
            item,
            left: it.count,
        });
        Self {
            problem,
            values,
            left: items.iter().map(|item| item.count).collect(),
            open: open.collect(),
            fitting: Vec::new(),
            counts: vec![0; items.len()],
        }
    }

    fn fill_all(mut self, work: &mut u64) -> Vec<Mix> {
        let bins = self.values.bins.iter();
        let mut candidates: Vec<Candidate> = bins
            .map(|bin| self.best_mix(*bin, work))
            .filter(|it| !it.content.is_empty())
            .collect();
        let mut mixes = Vec::new();
        while self.left.iter().any(|left| *left > 0) {
            let all = candidates.iter().enumerate();
            let best = all.max_by(|(_, a), (_, b)| a.worth.total_cmp(&b.worth));
            let Some((idx, best)) = best else { break };
            let times = self.times(best);
            if times == 0 {
                // With fewer items left a bin hardly ever gains worth, so those below the best can wait for their turn.
                self.drop_used();
                let again = self.best_mix(best.bin, work);
                if again.content.is_empty() {
                    candidates.remove(idx);
                } else {
                    candidates[idx] = again;
                }
                continue;
            }
            for (item, count) in &best.content {
                self.left[*item] -= count * times;
            }
            mixes.push(Mix {
                content: best.content.clone(),
                times,
            });
        }
        mixes
    }

    fn times(&self, mix: &Candidate) -> u32 {
        let times = |(item, count): &(usize, u32)| self.left[*item] / count;
        mix.content.iter().map(times).min().unwrap_or(0)
    }

    fn drop_used(&mut self) {
        let left = &self.left;
        self.open.retain_mut(|it| {
            it.left = left[it.item];
            it.left > 0
        });
    }

    fn best_mix(&mut self, bin: usize, work: &mut u64) -> Candidate {
        let [first, second, third] = RULES.map(|rule| self.mix_by(bin, rule, work));
        let better = |a: Candidate, b: Candidate| if b.worth > a.worth { b } else { a };
        better(better(first, second), third)
    }

    /// Fills one bin, item by item, each time with the item that has the most value for what it takes of what is left.
    fn mix_by(&mut self, bin: usize, rule: Rule, work: &mut u64) -> Candidate {
        let mut free: [f64; P] = padded(self.problem.room_of(bin), 0.0);
        let fitting = self.open.iter().copied();
        self.fitting.clear();
        self.fitting
            .extend(fitting.filter(|it| self.problem.holds(bin, it.item)));
        let mut value = 0.0;
        let mut touched: Vec<usize> = Vec::new();
        loop {
            *work += self.fitting.len() as u64 / WORK_RATIO + 1;
            let Some(best) = best_item(&mut self.fitting, &free, rule) else {
                break;
            };
            let it = &mut self.fitting[best];
            it.left -= 1;
            if self.counts[it.item] == 0 {
                touched.push(it.item);
            }
            self.counts[it.item] += 1;
            value += it.value;
            for (free, wanted) in free.iter_mut().zip(&it.request) {
                *free -= wanted;
            }
        }
        touched.sort_unstable();
        let counted = touched
            .iter()
            .map(|item| (*item, std::mem::take(&mut self.counts[*item])));
        Candidate {
            bin,
            content: counted.collect(),
            worth: value / self.problem.price_of(bin).max(1.0),
        }
    }
}

/// The place of the best item that fits. Items that do not fit are taken out when they are many, as they never fit again.
fn best_item<const P: usize>(
    items: &mut Vec<Open<P>>,
    free: &[f64; P],
    rule: Rule,
) -> Option<usize> {
    let fits = |it: &Open<P>| {
        let mut fits = it.left > 0;
        for (wanted, free) in it.request.iter().zip(free) {
            fits &= wanted <= free;
        }
        fits
    };
    let per_free = free.map(|free| 1.0 / free.max(1.0));
    let mut best: Option<(usize, (f64, f64))> = None;
    let mut misfits = 0;
    for (place, it) in items.iter().enumerate() {
        if !fits(it) {
            misfits += 1;
            continue;
        }
        let (value, taken) = rule.weigh(it, &per_free);
        if best.is_none_or(|(_, (most, least))| value * least > most * taken) {
            best = Some((place, (value, taken)));
        }
    }
    let (place, _) = best?;
    if misfits * 4 <= items.len() {
        return Some(place);
    }
    let item = items[place].item;
    items.retain(fits);
    items.binary_search_by_key(&item, |it| it.item).ok()
}

fn padded<const P: usize>(amounts: &[f64], rest: f64) -> [f64; P] {
    let mut all = [rest; P];
    for (all, amount) in all.iter_mut().zip(amounts) {
        *all = *amount;
    }
    all
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
