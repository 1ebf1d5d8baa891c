//! What the three lists have in common: an entry is a name and a configuration, written in a scenario as the name alone
//! or as a table.

/// Makes a list: an enum with a variant a line, its reader, its schema, and the way to the scheme of an entry. With
/// `none` its first entry, the default, stands for no scheme. With `others` a program may add entries when it starts.
macro_rules! list {
    (
        $(#[$doc:meta])*
        $list:ident of $scheme:path, $what:literal;
        $(none $none_name:literal $none:ident;)?
        $($name:literal $variant:ident($config:ty),)*
        $(needing settings: $own_name:literal $own:ident($own_config:ty),)?
        $(others: $other:ident,)?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        #[allow(missing_docs, reason = "each variant is documented by its configuration")]
        #[allow(clippy::large_enum_variant, reason = "a run has one of them, or one for each class of traffic")]
        pub enum $list {
            $(
                #[default]
                #[serde(rename = $none_name)]
                $none,
            )?
            $(#[serde(rename = $name)] $variant($config),)*
            $(#[serde(rename = $own_name)] $own($own_config),)?
            $(#[serde(untagged)] $other($other),)?
        }

        /// What the derived reader of the table form reads.
        #[derive(serde::Deserialize, schemars::JsonSchema)]
        #[allow(clippy::large_enum_variant, reason = "it is read once")]
        enum Table {
            $(#[serde(rename = $name)] $variant($config),)*
            $(#[serde(rename = $own_name)] $own($own_config),)?
        }

        impl From<Table> for $list {
            fn from(table: Table) -> $list {
                match table {
                    $(Table::$variant(config) => $list::$variant(config),)*
                    $(Table::$own(config) => $list::$own(config),)?
                }
            }
        }

        impl $list {
            /// Names that are complete without settings, in the order of the list.
            pub const NAMES: &[&str] = &[$($none_name,)? $($name),*];

            /// Names that need settings, which have no defaults.
            pub const NEEDING_SETTINGS: &[&str] = &[$($own_name)?];

            /// The entry of this name, with its defaults.
            pub fn named(name: &str) -> Option<$list> {
                $(if let Some(other) = $other::named(name) {
                    return Some($list::$other(other));
                })?
                $list::listed(name)
            }

            /// The same, without the entries that programs have added.
            fn listed(name: &str) -> Option<$list> {
                match name {
                    $($none_name => Some($list::$none),)?
                    $($name => Some($list::$variant(Default::default())),)*
                    $($own_name => Some($list::$own(Default::default())),)?
                    _ => None,
                }
            }

            /// Its name in the list.
            pub fn name(&self) -> &'static str {
                match self {
                    $($list::$none => $none_name,)?
                    $($list::$variant(_) => $name,)*
                    $($list::$own(_) => $own_name,)?
                    $($list::$other(other) => other.name(),)?
                }
            }

            list!(@as_scheme $list of $scheme; $($none;)? $($variant)* $($own)? $(, $other)?);
        }

        impl<'de> serde::Deserialize<'de> for $list {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$list, D::Error> {
                let others = list!(@others $($other)?);
                contract::name_or_table::<D, $list, Table>(deserializer, $what, $list::NAMES, $list::listed, others)
            }
        }

        impl schemars::JsonSchema for $list {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($list).into()
            }
            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let table = generator.subschema_for::<Table>();
                #[allow(unused_mut, reason = "not every list grows")]
                let mut forms = vec![schemars::json_schema!({ "enum": $list::NAMES }), table];
                $(forms.extend($other::schemas(generator));)?
                schemars::json_schema!({ "anyOf": forms })
            }
        }
    };
    (@others) => { () };
    (@others $other:ident) => { $crate::registered::All };
    (@as_scheme $list:ident of $scheme:path; $none:ident; $($variant:ident)*) => {
        /// The scheme, if the entry stands for one.
        pub fn as_scheme(&self) -> Option<&dyn $scheme> {
            match self {
                $list::$none => None,
                $($list::$variant(config) => Some(config),)*
            }
        }
    };
    (@as_scheme $list:ident of $scheme:path; $($variant:ident)* $(, $other:ident)?) => {
        /// The scheme.
        pub fn as_scheme(&self) -> &dyn $scheme {
            match self {
                $($list::$variant(config) => config,)*
                $($list::$other(other) => other.scheme(),)?
            }
        }
    };
}

pub(crate) use list;
