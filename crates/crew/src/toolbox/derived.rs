//! Derives the schemas of all tools again and compares them with those under `schemas/tools/`.
//!
//! After a change: `UPDATE_SCHEMAS=1 cargo test -p rehearsal-crew --features schema schemas`.

#![expect(clippy::unwrap_used, reason = "a test stops where something goes wrong")]

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::tool::BuiltIn;
use super::*;

#[test]
fn the_schemas_of_tools_are_what_their_arguments_say() {
    compare::<Bash>();
    compare::<EditFile>();
    compare::<GitDiff>();
    compare::<Glob>();
    compare::<Grep>();
    compare::<ReadFile>();
    compare::<TaskDone>();
    compare::<TaskBlock>();
    compare::<Progress>();
    compare::<Decide>();
    compare::<RunTests>();
    compare::<Search>();
    compare::<WriteFile>();
}

fn compare<T: BuiltIn>()
where
    T::Arguments: JsonSchema,
{
    let text = serde_json::to_string_pretty(&schema_of::<T::Arguments>()).unwrap() + "\n";
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/tools");
        fs_err::write(format!("{directory}/{}.json", T::NAME), text).unwrap();
    } else {
        let hint = "UPDATE_SCHEMAS=1 cargo test -p rehearsal-crew --features schema schemas";
        assert_eq!(T::SCHEMA, text, "schemas/tools/{}.json is out of date: {hint}", T::NAME);
    }
}

/// A model pays for every word, so what says nothing is left out.
fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    for unneeded in ["$schema", "title", "description"] {
        schema.remove(unneeded);
    }
    let mut schema = schema.to_value();
    list_choices(&mut schema);
    schema
}

/// A choice of words becomes a list of them: the description of the choice says what each means.
fn list_choices(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(list_choices),
        Value::Object(fields) => {
            fields.values_mut().for_each(list_choices);
            let choice =
                ["oneOf", "anyOf"].into_iter().find_map(|key| Some((key, choices(fields.get(key)?)?)));
            if let Some((key, choices)) = choice {
                fields.remove(key);
                fields.insert("enum".to_owned(), Value::Array(choices));
            }
        }
        _ => {}
    }
}

/// The values that are allowed, if each alternative is made of such.
fn choices(alternatives: &Value) -> Option<Vec<Value>> {
    let mut all = Vec::new();
    for alternative in alternatives.as_array()? {
        match (alternative.get("const"), alternative.get("enum").and_then(Value::as_array)) {
            (Some(value), _) => all.push(value.clone()),
            (None, Some(values)) => all.extend(values.iter().cloned()),
            (None, None) if alternative.get("type")? == "null" => all.push(Value::Null),
            (None, None) => return None,
        }
    }
    Some(all)
}
