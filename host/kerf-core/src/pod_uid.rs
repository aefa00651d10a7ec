//! The uid of a pod, in little room: a large cluster has a hundred thousand.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use uuid::Uuid;

/// `metadata.uid` of a pod. Virtual pods of a CapacityBuffer have made-up ones.
#[derive(Clone, PartialEq, Eq)]
pub struct PodUid(Form);

#[derive(Clone, PartialEq, Eq)]
enum Form {
    /// As the API server makes them: sixteen bytes in place of the text. Never one whose text is written in another way.
    Uuid(Uuid),
    Other(Arc<str>),
}

impl PodUid {
    /// The uid as it is written.
    pub fn text(&self) -> Cow<'_, str> {
        match &self.0 {
            Form::Uuid(uuid) => Cow::Owned(uuid.as_hyphenated().to_string()),
            Form::Other(text) => Cow::Borrowed(text),
        }
    }
}

impl Default for PodUid {
    fn default() -> Self {
        Self::from("")
    }
}

impl From<&str> for PodUid {
    /// Takes the text as it is; nothing is checked.
    fn from(text: &str) -> Self {
        let mut written = Uuid::encode_buffer();
        let uuid = Uuid::try_parse(text);
        let is_as_written = |uuid: &Uuid| *uuid.hyphenated().encode_lower(&mut written) == *text;
        Self(match uuid.ok().filter(is_as_written) {
            Some(uuid) => Form::Uuid(uuid),
            None => Form::Other(Arc::from(text)),
        })
    }
}

impl From<String> for PodUid {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

/// As their texts: what is drawn by them stays the same in whichever form they are kept.
impl Hash for PodUid {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.0 {
            Form::Uuid(uuid) => {
                let mut text = Uuid::encode_buffer();
                uuid.hyphenated().encode_lower(&mut text).hash(state);
            }
            Form::Other(text) => text.hash(state),
        }
    }
}

/// As their texts, which of two uuids is the order of their bytes.
impl Ord for PodUid {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Form::Uuid(own), Form::Uuid(other)) => own.cmp(other),
            (Form::Other(own), Form::Other(other)) => own.cmp(other),
            _ => self.text().cmp(&other.text()),
        }
    }
}

impl PartialOrd for PodUid {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for PodUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Uuid(uuid) => fmt::Display::fmt(uuid.as_hyphenated(), f),
            Form::Other(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for PodUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: [&str; 8] = [
        "",
        "0b6b1b9e-3a0f-4a6c-8f57-0a8e9e0d6a11",
        "0B6B1B9E-3A0F-4A6C-8F57-0A8E9E0D6A11",
        "0b6b1b9e3a0f4a6c8f570a8e9e0d6a11",
        "{0b6b1b9e-3a0f-4a6c-8f57-0a8e9e0d6a11}",
        "f0000000-0000-0000-0000-000000000001",
        "f0000000-0000-0000-0000-000000000001-7",
        "web-1",
    ];

    #[test]
    fn every_text_comes_back_as_it_was_and_in_its_order() {
        for text in TEXTS {
            let uid = PodUid::from(text);
            assert_eq!((&*uid.text(), uid.to_string().as_str()), (text, text));
            for other in TEXTS {
                let (own, theirs) = (PodUid::from(text), PodUid::from(other));
                assert_eq!(own.cmp(&theirs), text.cmp(other), "{text} {other}");
                assert_eq!(own == theirs, text == other, "{text} {other}");
            }
        }
    }

    #[test]
    fn what_the_api_server_makes_takes_no_allocation() {
        let is_short = |text: &str| matches!(PodUid::from(text).0, Form::Uuid(_));

        assert_eq!(TEXTS.map(is_short).into_iter().filter(|it| *it).count(), 2);
        assert!(size_of::<PodUid>() <= 24);
    }
}
