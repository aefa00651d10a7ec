//! Equal pod specs share one allocation, which makes grouping pods of one workload nearly free.

use std::collections::HashSet;
use std::sync::Arc;

use kerf_core::pod::PodSpec;

/// Specs in use, and some that were. Swept when it has doubled, so that sweeping costs little per insertion.
#[derive(Debug, Default)]
pub(crate) struct Specs {
    specs: HashSet<Arc<PodSpec>>,
    swept_at: usize,
}

/// Below this many specs a sweep frees nothing worth the walk.
const SWEEP_LEAST: usize = 1024;

impl Specs {
    pub(crate) fn share(&mut self, spec: PodSpec) -> Arc<PodSpec> {
        if let Some(known) = self.specs.get(&spec) {
            return Arc::clone(known);
        }
        if self.specs.len() >= SWEEP_LEAST.max(self.swept_at * 2) {
            self.specs.retain(|spec| Arc::strong_count(spec) > 1);
            self.swept_at = self.specs.len();
        }
        let shared = Arc::new(spec);
        self.specs.insert(Arc::clone(&shared));
        shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_specs_are_one_and_unused_ones_are_swept() {
        let mut specs = Specs::default();
        let kept = specs.share(PodSpec::requesting(1, 1));

        for cpu_milli in 0..10_000 {
            specs.share(PodSpec::requesting(cpu_milli, 2));
        }

        assert!(Arc::ptr_eq(&kept, &specs.share(PodSpec::requesting(1, 1))));
        assert!(specs.specs.len() <= SWEEP_LEAST + 1);
    }
}
