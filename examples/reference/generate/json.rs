//! The JSON schemas in `docs/` as tables for people.

use std::fmt::Write;
use std::io::Error;
use std::path::Path;

use serde_json::Value;

use super::{code, head, row};

pub fn page(docs: &Path) -> std::io::Result<String> {
    let mut text = String::from(
        "# JSON\n\nEach object has a field `version`, which is 1. A field may be added under the same number; none is \
         removed and none\nchanges its meaning. The schemas are the contract, and the tests hold what is written \
         against them.\n\nPaths that are not UTF-8 are shown with U+FFFD.\n",
    );
    let mut names: Vec<String> = std::fs::read_dir(docs)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .filter(|name| name.as_ref().is_ok_and(|name| name.ends_with(".schema.json")) || name.is_err())
        .collect::<std::io::Result<_>>()?;
    names.sort();
    for name in names {
        let schema: Value =
            serde_json::from_slice(&std::fs::read(docs.join(&name))?).map_err(Error::other)?;
        let title = schema["title"].as_str().unwrap_or(&name);
        let short = name.trim_end_matches(".schema.json");
        let _ = write!(text, "\n## {title}\n\n[{name}](../{name})\n");
        if schema.get("properties").is_some() {
            object(&mut text, &schema, &schema, short, None);
        }
        for (part, definition) in schema["$defs"].as_object().into_iter().flatten() {
            if definition.get("properties").is_some() {
                object(&mut text, &schema, definition, short, Some(part));
            }
        }
    }
    Ok(text)
}

/// One table; what a field refers to has a table of its own.
fn object(text: &mut String, root: &Value, object: &Value, file: &str, name: Option<&str>) {
    if let Some(name) = name {
        let _ = write!(text, "\n### {file} {name}\n");
    }
    if let Some(description) = object["description"].as_str() {
        let _ = write!(text, "\n{description}\n");
    }
    let required: Vec<&str> =
        object["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let _ = write!(text, "\n{}", head(&["field", "type", "what"]));
    for (field, schema) in object["properties"].as_object().into_iter().flatten() {
        let optional = if required.contains(&field.as_str()) { "" } else { ", may be absent" };
        text.push_str(&row([
            code(field),
            format!("{}{optional}", kind(root, file, schema)),
            what(root, schema),
        ]));
    }
}

fn what(root: &Value, schema: &Value) -> String {
    let target = schema["$ref"].as_str().and_then(|name| root.pointer(name.trim_start_matches('#')));
    let own = schema["description"].as_str();
    own.or_else(|| target?.get("description")?.as_str()).unwrap_or_default().to_owned()
}

fn kind(root: &Value, file: &str, schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = root.pointer(reference.trim_start_matches('#')).unwrap_or(&Value::Null);
        let name = reference.rsplit('/').next().unwrap_or(reference);
        return if target.get("properties").is_some() {
            format!("[{name}](#{file}-{name})")
        } else {
            kind(root, file, target)
        };
    }
    if let Some(value) = schema.get("const") {
        return code(&value.to_string());
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(|value| code(&value.to_string())).collect::<Vec<_>>().join(", ");
    }
    if let Some(parts) = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array()) {
        return parts.iter().map(|part| kind(root, file, part)).collect::<Vec<_>>().join(" or ");
    }
    let name = match &schema["type"] {
        Value::String(name) => name.clone(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => "any".to_owned(),
    };
    let of = |part: &str| schema.get(part).filter(|part| part.is_object()).map(|part| kind(root, file, part));
    match name.as_str() {
        "array" => of("items").map_or(name.clone(), |of| format!("array of {of}")),
        "object" => of("additionalProperties").map_or(name.clone(), |of| format!("object of {of}")),
        _ => name,
    }
}
