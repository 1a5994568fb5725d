//! Messages of JSON-RPC 1.0 (RFC 7047 §4).

use serde_json::{Map, Value};

/// A message of the server.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum RpcMessage {
    /// A request, or with the id null a notification.
    Request { method: String, params: Vec<Value>, id: Value },
    /// A reply to a request of ours.
    Reply { result: Result<Value, Value>, id: Value },
}

impl RpcMessage {
    /// Reads a message; `Err` says what is wrong with it.
    pub(crate) fn parse(bytes: &[u8]) -> Result<RpcMessage, String> {
        let mut json: Map<String, Value> =
            serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let mut take = |key: &str| json.remove(key).unwrap_or(Value::Null);
        let id = take("id");
        match (take("method"), take("params")) {
            (Value::String(method), Value::Array(params)) => Ok(RpcMessage::Request { method, params, id }),
            (Value::Null, Value::Null) => Ok(RpcMessage::Reply {
                result: match take("error") {
                    Value::Null => Ok(take("result")),
                    error => Err(error),
                },
                id,
            }),
            _ => Err("neither a request nor a reply".to_owned()),
        }
    }
}

/// The text of an error that the server sent: the `error` member and the details of an error object
/// of OVSDB, or the JSON.
pub(crate) fn error_text(error: &Value) -> String {
    let member = |key| error.get(key).and_then(Value::as_str);
    match (error, member("error"), member("details")) {
        (Value::String(text), ..) => text.clone(),
        (_, Some(error), Some(details)) => format!("{error}: {details}"),
        (_, Some(error), None) => error.to_owned(),
        _ => crate::value::shortened(&error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_replies_and_nonsense_are_told_apart() {
        let parse = |json: Value| RpcMessage::parse(json.to_string().as_bytes());
        let request = parse(json!({"method": "echo", "params": [], "id": "e"}));
        let params = Vec::new();
        assert_eq!(request, Ok(RpcMessage::Request { method: "echo".into(), params, id: json!("e") }));
        let reply = parse(json!({"result": 5, "error": null, "id": 1}));
        assert_eq!(reply, Ok(RpcMessage::Reply { result: Ok(json!(5)), id: json!(1) }));
        let error = parse(json!({"result": null, "error": "no", "id": 1}));
        assert_eq!(error, Ok(RpcMessage::Reply { result: Err(json!("no")), id: json!(1) }));
        assert!(parse(json!({"method": 5, "params": [], "id": 1})).is_err());
        assert!(parse(json!({"method": "echo", "params": 5, "id": 1})).is_err());
        assert!(RpcMessage::parse(b"{\"id\":}").is_err());
        let deep = format!("{{\"id\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(RpcMessage::parse(deep.as_bytes()).is_err());
    }

    #[test]
    fn an_error_is_shown_with_its_details() {
        assert_eq!(error_text(&json!("unknown database")), "unknown database");
        assert_eq!(
            error_text(&json!({"error": "constraint violation", "details": "no"})),
            "constraint violation: no"
        );
        assert_eq!(error_text(&json!({"error": "aborted"})), "aborted");
        assert_eq!(error_text(&json!(5)), "5");
    }
}
