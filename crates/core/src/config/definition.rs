//! How a group of settings is defined.

/// A struct with a default for each field. Its names are the keys of the configuration file, its comments are in the JSON Schema.
macro_rules! settings {
    ($(#[$attribute:meta])* $name:ident { $($(#[$field_attribute:meta])* $field:ident: $type:ty = $default:expr;)* }) => {
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(default, deny_unknown_fields)]
        $(#[$attribute])*
        pub struct $name {
            $($(#[$field_attribute])* pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }
    };
}

pub(super) use settings;
