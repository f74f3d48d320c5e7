//! A validator of as much of JSON Schema as the schemas in docs/ use. A word that it does not know fails the test.
#![allow(dead_code)]

use serde_json::Value;

pub const RESULT: &str = include_str!("../../docs/result.schema.json");
pub const STATUS: &str = include_str!("../../docs/status.schema.json");
pub const AUDIT: &str = include_str!("../../docs/audit.schema.json");

#[track_caller]
pub fn check(schema: &str, value: &Value) {
    let root: Value = serde_json::from_str(schema).unwrap();
    if let Err(why) = fits(&root, &root, value) {
        panic!("{why}: {value}");
    }
}

pub fn fits(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    for (word, rule) in schema.as_object().unwrap() {
        let holds = match word.as_str() {
            "$schema" | "title" | "description" | "$defs" => true,
            "$ref" => {
                let name = rule.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                fits(root, &root["$defs"][name], value).map_err(|why| format!("{name}: {why}"))?;
                true
            }
            "oneOf" => {
                let all: Vec<_> = rule.as_array().unwrap().iter().map(|one| fits(root, one, value)).collect();
                if all.iter().filter(|one| one.is_ok()).count() != 1 {
                    return Err(format!("not one of: {all:?}"));
                }
                true
            }
            "type" => match rule {
                Value::Array(types) => types.iter().any(|one| is(one, value)),
                one => is(one, value),
            },
            "const" => rule == value,
            "enum" => rule.as_array().unwrap().contains(value),
            "minimum" => value.as_i64().is_none_or(|number| number >= rule.as_i64().unwrap()),
            "maximum" => value.as_i64().is_none_or(|number| number <= rule.as_i64().unwrap()),
            "pattern" => value.as_str().is_none_or(|text| matches(rule.as_str().unwrap(), text)),
            "required" => {
                rule.as_array().unwrap().iter().all(|name| value.get(name.as_str().unwrap()).is_some())
            }
            "properties" => {
                for (name, one) in rule.as_object().unwrap() {
                    if let Some(part) = value.get(name) {
                        fits(root, one, part).map_err(|why| format!("{name}: {why}"))?;
                    }
                }
                true
            }
            "additionalProperties" => {
                assert_eq!(rule, &Value::Bool(false));
                let known = schema["properties"].as_object().unwrap();
                value.as_object().is_none_or(|object| object.keys().all(|name| known.contains_key(name)))
            }
            "items" => {
                for part in value.as_array().into_iter().flatten() {
                    fits(root, rule, part)?;
                }
                true
            }
            word => panic!("the schema has a new word: {word}"),
        };
        if !holds {
            return Err(format!("{word} {rule} does not hold for {value}"));
        }
    }
    Ok(())
}

fn is(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        name => panic!("the schema has a new type: {name}"),
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    let hex = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    match pattern {
        "^[0-9a-f]{16}$" => text.len() == 16 && text.as_bytes().iter().all(hex),
        "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3}Z$" => {
            let shape = |byte| if u8::is_ascii_digit(&byte) { b'0' } else { byte };
            text.bytes().map(shape).eq(*b"0000-00-00T00:00:00.000Z")
        }
        "^[0-9a-f]{64}$" => text.len() == 64 && text.as_bytes().iter().all(hex),
        "^(exited|signalled|timed-out|ended|[a-z]+-limit)$" => {
            ["exited", "signalled", "timed-out", "ended"].contains(&text)
                || text.strip_suffix("-limit").is_some_and(|name| {
                    !name.is_empty() && name.as_bytes().iter().all(u8::is_ascii_lowercase)
                })
        }
        pattern => panic!("the schema has a new pattern: {pattern}"),
    }
}

#[test]
fn the_validator_can_say_no() {
    let root: Value = serde_json::from_str(RESULT).unwrap();
    let refused = serde_json::json!({
        "version": 1, "time": "2026-11-29T23:05:12.101Z", "run": "0123456789abcdef", "uid": 0, "argv": ["a", [255]],
        "argv_cut": null, "event": "refused", "outcome": "refused", "status": 125, "message": "m", "hint": null,
        "policy": null,
    });
    assert_eq!(fits(&root, &root, &refused), Ok(()));
    for (name, wrong) in [
        ("version", Value::from(2)),
        ("status", 1.into()),
        ("time", "2026-11-29 23:05:12".into()),
        ("argv", Value::from(vec![256])),
        ("message", 1.into()),
        ("policy", "x".into()),
        ("more", 1.into()),
    ] {
        let mut value = refused.clone();
        value[name] = wrong;
        assert!(fits(&root, &root, &value).is_err(), "{name}");
    }
    assert!(fits(&root, &root, &serde_json::json!({ "version": 1 })).is_err());
}
