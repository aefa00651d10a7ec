//! Cron schedules of disruption budgets, in UTC or a time zone.
//!
//! Five fields (minute, hour, day of month, month, day of week) with lists, ranges, steps and names, or a macro such
//! as `@daily`. As in other crons a day matches either day field when both are restricted.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};

/// A schedule that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("parse schedule {text:?}: want five cron fields or a macro such as @daily")]
pub struct ParseCronError {
    text: String,
}

/// A cron schedule. Each field is a set of allowed numbers, one bit each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Both day fields are restricted, so that matching one is enough.
    either_day: bool,
    /// Whose clock the fields speak of.
    zone: TimeZone,
}

const MACROS: &[(&str, &str)] = &[
    ("@annually", "0 0 1 1 *"),
    ("@yearly", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];
const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
/// The 29th of February comes at least once in eight years; a search beyond that finds nothing.
const MAX_SEARCH_DAYS: u32 = 8 * 366;

impl Cron {
    /// Parses the text form; the times are UTC.
    pub fn parse(text: &str) -> Result<Self, ParseCronError> {
        let expanded = MACROS
            .iter()
            .find(|(name, _)| *name == text.trim())
            .map_or(text, |(_, fields)| fields);
        Self::parse_fields(expanded).ok_or_else(|| ParseCronError {
            text: text.to_owned(),
        })
    }

    fn parse_fields(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            return None;
        };
        let is_restricted = |field: &str| !field.starts_with(['*', '?']);
        let weekdays = parse_field(weekday, 0, 7, &WEEKDAYS)?;
        Some(Self {
            minutes: parse_field(minute, 0, 59, &[])?,
            hours: parse_field(hour, 0, 23, &[])?,
            days: parse_field(day, 1, 31, &[])?,
            months: parse_field(month, 1, 12, &MONTHS)?,
            // 7 is Sunday too.
            weekdays: (weekdays | (weekdays >> 7)) & 0x7f,
            either_day: is_restricted(day) && is_restricted(weekday),
            zone: TimeZone::UTC,
        })
    }

    /// The same by the clocks of a time zone. A time that a clock change skips is taken as much later; one that comes twice
    /// counts the first time. Karpenter: differs, because it knows UTC only.
    #[must_use]
    pub fn in_zone(self, zone: TimeZone) -> Self {
        Self { zone, ..self }
    }

    /// The first time after the given one that the schedule names; none when it names no real day.
    pub fn next_after(&self, time: Timestamp) -> Option<Timestamp> {
        let start = time.to_zoned(self.zone.clone()).datetime();
        let mut day = start.date();
        // A clock that was put back shows some minutes twice: what it showed up to an hour ago may come again.
        let mut least_minute = u32::try_from(start.hour()).ok()? * 60;
        for _ in 0..MAX_SEARCH_DAYS {
            if self.names_day(day) {
                let minutes = (least_minute..24 * 60).filter(|minute| self.names_minute(*minute));
                let mut times = minutes.filter_map(|minute| self.time_on(day, minute));
                if let Some(found) = times.find(|found| *found > time) {
                    return Some(found);
                }
            }
            day = day.checked_add(1.day()).ok()?;
            least_minute = 0;
        }
        None
    }

    fn time_on(&self, day: jiff::civil::Date, minute_of_day: u32) -> Option<Timestamp> {
        let hour = i8::try_from(minute_of_day / 60).ok()?;
        let minute = i8::try_from(minute_of_day % 60).ok()?;
        let zoned = day
            .at(hour, minute, 0, 0)
            .to_zoned(self.zone.clone())
            .ok()?;
        Some(zoned.timestamp())
    }

    /// Whether a window of that length, opened at each time of the schedule, is open now.
    pub fn is_within(&self, duration: SignedDuration, now: Timestamp) -> bool {
        let Ok(earliest) = now.checked_sub(duration) else {
            return false;
        };
        self.next_after(earliest)
            .is_some_and(|opened| opened <= now)
    }

    fn names_day(&self, day: jiff::civil::Date) -> bool {
        let has = |set: u64, number: i8| (set >> number) & 1 == 1;
        let by_date = has(self.days, day.day());
        let by_weekday = has(self.weekdays, day.weekday().to_sunday_zero_offset());
        let day_matches = if self.either_day {
            by_date || by_weekday
        } else {
            by_date && by_weekday
        };
        day_matches && has(self.months, day.month())
    }

    fn names_minute(&self, minute_of_day: u32) -> bool {
        let has = |set: u64, number: u32| (set >> number) & 1 == 1;
        has(self.hours, minute_of_day / 60) && has(self.minutes, minute_of_day % 60)
    }
}

fn parse_field(field: &str, first: u32, last: u32, names: &[&str]) -> Option<u64> {
    field.split(',').try_fold(0, |set, part| {
        Some(set | parse_part(part, first, last, names)?)
    })
}

fn parse_part(part: &str, first: u32, last: u32, names: &[&str]) -> Option<u64> {
    let (range, step) = match part.split_once('/') {
        Some((range, step)) => (
            range,
            Some(step.parse::<u32>().ok().filter(|step| *step > 0)?),
        ),
        None => (part, None),
    };
    let (from, to) = match range.split_once('-') {
        Some((from, to)) => (
            parse_number(from, first, names)?,
            parse_number(to, first, names)?,
        ),
        None if range == "*" || range == "?" => (first, last.min(first + 59)),
        None => {
            let number = parse_number(range, first, names)?;
            // `5/10` means from 5 on.
            (number, if step.is_some() { last } else { number })
        }
    };
    if from < first || to > last || from > to {
        return None;
    }
    let step = usize::try_from(step.unwrap_or(1)).ok()?;
    Some(
        (from..=to)
            .step_by(step)
            .fold(0, |set, number| set | (1 << number)),
    )
}

fn parse_number(text: &str, first: u32, names: &[&str]) -> Option<u32> {
    let by_name = names
        .iter()
        .position(|name| name.eq_ignore_ascii_case(text));
    match by_name {
        Some(idx) => u32::try_from(idx).ok().map(|idx| idx + first),
        None => text
            .bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| text.parse().ok())?,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schedule: &str, after: &str, expected: &str) {
        let next = Cron::parse(schedule)
            .unwrap()
            .next_after(after.parse().unwrap())
            .unwrap();
        assert_eq!(next.to_string(), expected, "{schedule} after {after}");
    }

    #[test]
    fn the_next_time_is_found() {
        check("@daily", "2026-08-20T10:00:00Z", "2026-08-21T00:00:00Z");
        check("@hourly", "2026-08-20T10:00:00Z", "2026-08-20T11:00:00Z");
        check(
            "30 9 * * mon-fri",
            "2026-08-21T09:30:00Z",
            "2026-08-24T09:30:00Z",
        );
        check(
            "*/15 * * * *",
            "2026-08-20T10:16:00Z",
            "2026-08-20T10:30:00Z",
        );
        check("0 0 29 2 *", "2026-08-20T10:00:00Z", "2028-02-29T00:00:00Z");
        check("0 0 * * 7", "2026-08-20T10:00:00Z", "2026-08-23T00:00:00Z");
        check(
            "0 0 1 * sun",
            "2026-08-24T10:00:00Z",
            "2026-08-30T00:00:00Z",
        );
        check(
            "0 22,23 * JAN *",
            "2026-12-31T23:59:00Z",
            "2027-01-01T22:00:00Z",
        );
    }

    #[test]
    fn times_are_those_of_the_zones_clocks() {
        let next = |schedule: &str, after: &str| {
            let zone = TimeZone::fixed(jiff::tz::offset(8));
            let cron = Cron::parse(schedule).unwrap().in_zone(zone);
            let next = cron.next_after(after.parse().unwrap());
            next.unwrap().to_string()
        };

        assert_eq!(
            next("0 9 * * *", "2026-08-20T10:00:00Z"),
            "2026-08-21T01:00:00Z"
        );
        // Monday there is still Sunday in UTC.
        assert_eq!(
            next("0 1 * * mon", "2026-08-22T10:00:00Z"),
            "2026-08-23T17:00:00Z"
        );
    }

    #[test]
    fn broken_schedules_are_refused() {
        for text in [
            "",
            "* * * *",
            "60 * * * *",
            "* * 0 * *",
            "*/0 * * * *",
            "@often",
            "a b c d e",
            "5-1 * * * *",
        ] {
            assert!(Cron::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_window_is_open_for_its_duration() {
        let cron = Cron::parse("0 9 * * *").unwrap();
        let duration = SignedDuration::from_hours(8);
        let open = |now: &str| cron.is_within(duration, now.parse().unwrap());
        assert!(open("2026-08-20T09:00:00Z"));
        assert!(open("2026-08-20T16:59:59Z"));
        assert!(!open("2026-08-20T17:00:00Z"));
        assert!(!open("2026-08-20T08:59:59Z"));
    }

    #[test]
    fn a_day_that_never_comes_is_never_reached() {
        assert_eq!(
            Cron::parse("0 0 31 2 *")
                .unwrap()
                .next_after(Timestamp::UNIX_EPOCH),
            None
        );
    }
}
