//! Enums that survive a value of another version: the schema lists the known ones, the type keeps what it does not know.
//!
//! A watch of a typed list fails as a whole when one object does not deserialize, and a CRD of another version can be
//! installed at any time. So no enum of this crate may fail to read (invariant: a broken object never stops a watch).

/// Declares an enum whose known values are the schema's `enum`, with `Other` for everything else.
macro_rules! open_enum {
    (
        $(#[doc = $doc:literal])+
        $name:ident { $( $(#[doc = $value_doc:literal])+ $variant:ident = $text:literal, )+ }
    ) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $( $(#[doc = $value_doc])+ $variant, )+
            /// A value that this version does not know, kept as written.
            Other(String),
        }

        impl $name {
            /// The known values, as written in manifests.
            pub const VALUES: &[&str] = &[$($text),+];

            /// The value as written in manifests.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $( Self::$variant => $text, )+
                    Self::Other(text) => text,
                }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $( $text => Self::$variant, )+
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                Ok(Self::from(text.as_str()))
            }
        }

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "enum": Self::VALUES })
            }
        }
    };
}
pub(crate) use open_enum;
