//! Example requests of the OpenAPI document, as curl commands (`x-codeSamples`). They are made of
//! the examples of parameters and bodies, so each operation has one.

use serde_json::{Map, Value, json};

/// Adds to each operation of an OpenAPI document the commands of its example requests.
pub(super) fn add(document: &mut Value) {
    let paths = document["paths"].as_object_mut().expect("a document has paths");
    for (path, operations) in paths {
        for (method, operation) in operations.as_object_mut().expect("a path has operations") {
            let url = url(path, operation);
            let samples: Vec<Value> = bodies(operation)
                .into_iter()
                .map(|(label, body)| {
                    json!({"lang": "Shell", "label": label, "source": curl(method, &url, body.as_ref())})
                })
                .collect();
            operation["x-codeSamples"] = Value::from(samples);
        }
    }
}

/// Returns the path with the example of each parameter in its place. Of the parameters of a query
/// one at most has an example.
fn url(path: &str, operation: &Value) -> String {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let examples = parameters.filter_map(|parameter| Some((parameter, parameter["example"].as_str()?)));
    examples.fold(path.to_owned(), |path, (parameter, example)| {
        let name = parameter["name"].as_str().expect("a parameter has a name");
        match parameter["in"].as_str() {
            Some("query") => format!("{path}?{name}={example}"),
            _ => path.replace(&format!("{{{name}}}"), example),
        }
    })
}

/// Returns the example bodies of an operation, each with what it does. `None`: an empty body.
fn bodies(operation: &Value) -> Vec<(String, Option<Value>)> {
    let summary = operation["summary"].as_str().unwrap_or_default().trim_end_matches('.').to_owned();
    let examples = operation["requestBody"]["content"]["application/json"]["examples"].as_object();
    let body = |example: &Value| {
        (example["summary"].as_str().unwrap_or_default().to_owned(), Some(example["value"].clone()))
    };
    examples
        .map_or_else(|| vec![(summary, None)], |examples: &Map<_, _>| examples.values().map(body).collect())
}

/// Returns the command of a request over the control socket.
fn curl(method: &str, url: &str, body: Option<&Value>) -> String {
    let data = match (method, body) {
        ("get", _) => String::new(),
        (_, None) => "-X POST -H 'content-type: application/json' ".to_owned(),
        (_, Some(body)) => format!("-H 'content-type: application/json' -d '{body}' "),
    };
    format!("curl --unix-socket \"$SOCKET\" {data}http://localhost{url}")
}
