//! Quantities, the schedules of budgets, and price catalogs.

use jiff::{SignedDuration, Timestamp};
use kerf_cloud::provider::catalog::Catalog;
use kerf_core::disruption::cron::Cron;
use kerf_core::quantity::Quantity;

use super::{Planted, Target, seeds_of, text_of};

pub(super) const QUANTITY: Target = Target {
    name: "quantity",
    run: quantity,
    seeds: || seeds_of(&["100m", "1.5Gi", "-3", "12e6", "0.1Ei", "1E", "+7k", "5u"]),
};

pub(super) const CRON: Target = Target {
    name: "cron",
    run: cron,
    seeds: || {
        seeds_of(&[
            "0 9 * * mon-fri",
            "*/15 0-6,20-23 1,15 * *",
            "@daily",
            "0 0 29 2 *",
            "@every 1h",
        ])
    },
};

pub(super) const CATALOG: Target = Target {
    name: "catalog",
    run: catalog,
    seeds: || {
        let zones = ["cn-hangzhou-h".to_owned()];
        let embedded = Catalog::embedded("cn-hangzhou", &zones).ok();
        let small = embedded.and_then(|mut catalog| {
            // One type with a GPU: all that a type can have.
            catalog
                .types
                .retain(|it| it.gpus == 1 && !it.gpu_spec.is_empty());
            catalog.types.truncate(1);
            serde_json::to_vec(&catalog).ok()
        });
        small.into_iter().collect()
    },
};

fn quantity(bytes: &[u8], planted: Planted) {
    let Some(Ok(quantity)) = text_of(bytes).map(Quantity::parse) else {
        return;
    };
    let (units, millis) = (quantity.units(), quantity.millis());
    // Both are rounded away from nothing, so that a thousandth is something.
    let is_capped = [i64::MIN, i64::MAX].contains(&millis);
    let (units_of, millis_of) = (i128::from(units).abs(), i128::from(millis).abs());
    assert!(is_capped || units_of * 1_000 >= millis_of, "{quantity:?}");
    // Only a power of 1,024 comes to that.
    planted.at(units > 1 && units % (1 << 30) == 0);
}

fn cron(bytes: &[u8], planted: Planted) {
    let Some(Ok(cron)) = text_of(bytes).map(Cron::parse) else {
        return;
    };
    for now in [0, 1_764_000_000, 4_000_000_000] {
        let now = Timestamp::from_second(now).unwrap_or_default();
        let next = cron.next_after(now);
        assert!(next.is_none_or(|next| next > now));
        let _ = cron.is_within(SignedDuration::from_hours(8), now);
        // Once a leap year.
        planted.at(next
            .is_some_and(|next| next.duration_since(now) > SignedDuration::from_hours(24 * 400)));
    }
}

fn catalog(bytes: &[u8], planted: Planted) {
    let Some(Ok(catalog)) = text_of(bytes).map(Catalog::parse) else {
        return;
    };
    let _ = catalog.prices();
    planted.at(catalog.types.iter().any(|it| it.gpus > 1));
}
