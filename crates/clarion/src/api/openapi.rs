//! The API as an OpenAPI document, made from the same tables that read requests and write answers.

use axum::Json;
use serde_json::{Value, json};

use super::landing_calls;
use super::operations::{OPERATIONS, Operation};
use super::wire::{Field, Form};
use crate::domain::status_code::StatusCode;
use crate::intakes::formats::json as alert_form;

const ALERT_PATH: &str = "/intake/{name}";

/// What is said of one incident.
const INCIDENT: &[Field] = &[
    Field::required("key", "What the tool calls it."),
    Field::required(
        "result",
        "called: people are called from now on; known: they are being called, or somebody knows; resolved: it is over; nothing: there was nothing to do; refused.",
    ),
    Field::optional("callSid", "", "Its notice."),
];

/// Of every successful answer.
const STATUS_CODE: Field = Field::required("statusCode", "000000");

pub async fn document() -> Json<Value> {
    Json(describe())
}

pub fn describe() -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Clarion",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
            "description": "Voice notification and bill download. Answers are HTTP 200 whatever the statusCode; 000000 is success.",
        },
        "paths": paths(),
        "components": {
            "securitySchemes": {
                "authorization": { "type": "apiKey", "in": "header", "name": "Authorization",
                    "description": "Base64(accountSid + ':' + timestamp), timestamp yyyyMMddHHmmss" },
                "intake": { "type": "http", "scheme": "bearer", "description": "The token of the intake" },
                "intakeQuery": { "type": "apiKey", "in": "query", "name": "token", "description": "The token of the intake, where a tool cannot send headers" },
                "sig": { "type": "apiKey", "in": "query", "name": "sig",
                    "description": "MD5(accountSid + authToken + timestamp), 32 hex digits, with the timestamp of Authorization" },
            },
            "schemas": { "Refusal": refusal(), "Alert": alert() },
        },
        "security": [{ "authorization": [], "sig": [] }],
    })
}

fn text(about: &str) -> Value {
    json!({ "type": "string", "description": about })
}

fn path_parameters() -> Value {
    let parameter = |name: &str, about: &str| json!({ "name": name, "in": "path", "required": true, "description": about, "schema": { "type": "string" } });
    json!([
        parameter("SoftVersion", "Interface version, such as 2013-12-26"),
        parameter("accountSid", "Main account: 32 letters or digits")
    ])
}

fn paths() -> Value {
    let mut paths = serde_json::Map::new();
    for offered in OPERATIONS {
        let mut methods = json!({ "parameters": path_parameters() });
        for method in offered.methods {
            methods[method.to_lowercase()] = operation(offered, method);
        }
        let path = format!("/{{SoftVersion}}/Accounts/{{accountSid}}/{}", offered.path);
        paths.insert(path, methods);
    }
    paths.insert(
        "/bills/{file}".to_owned(),
        json!({
            "parameters": [{ "name": "file", "in": "path", "required": true, "description": "From downUrl", "schema": { "type": "string" } }],
            "get": fetch(),
        }),
    );
    paths.insert(ALERT_PATH.to_owned(), intake());
    paths.into()
}

/// Where alerts come in. Tools have forms of their own; this is the one for everything else.
fn intake() -> Value {
    let json = |schema: Value| json!({ "application/json": { "schema": schema } });
    let refusal = json(json!({ "$ref": "#/components/schemas/Refusal" }));
    let incidents = json!({ "type": "object", "required": ["statusCode", "incidents"], "properties": {
        "statusCode": text("000000"),
        "incidents": { "type": "array", "items": object(INCIDENT) } } });
    let refused = |about: &str| json!({ "description": about, "content": refusal });
    json!({
        "parameters": [{ "name": "name", "in": "path", "required": true, "description": "The intake", "schema": { "type": "string" } }],
        "post": {
            "operationId": "postAlert",
            "summary": "Bring an alert to an intake of the format json, or tell that it is over",
            "security": [{ "intake": [] }, { "intakeQuery": [] }],
            "requestBody": { "required": true, "content": json(json!({ "$ref": "#/components/schemas/Alert" })) },
            "responses": {
                "200": { "description": "What became of the incident", "content": json(incidents) },
                "400": refused("110141: the body cannot be read"),
                "401": refused("190012: the intake or its token is not valid"),
                "403": refused("The address may not bring alerts, or the account or application may not call"),
                "413": refused("110062: the body is too long"),
                "422": refused("A field's value is wrong, or the number may not be called; statusMsg names field and rule"),
                "503": refused("Trying again helps"),
            },
        },
    })
}

/// The body of an alert, as a JSON schema.
pub fn alert() -> Value {
    let rule = |name: &str| {
        let fields = landing_calls::FORM.fields.iter();
        let rule = fields.clone().find(|field| field.name == name);
        rule.map_or("", |field| field.rule)
    };
    alert_form::schema(rule)
}

fn operation(offered: &Operation, method: &str) -> Value {
    let both = |schema: &Value| json!({ "application/xml": { "schema": schema }, "application/json": { "schema": schema } });
    let name = offered.path.rsplit('/').next().unwrap_or_default();
    let form = offered.form.filter(|_| method == "POST");
    let parameters: Vec<_> = offered
        .query
        .iter()
        .map(|field| json!({ "name": field.name, "in": "query", "required": field.required && form.is_none(), "description": field.rule,
            "schema": { "type": "string" } }))
        .collect();
    let answer = json!({ "oneOf": [answer(offered), { "$ref": "#/components/schemas/Refusal" }], "xml": { "name": "Response" } });
    let mut operation = json!({
        "operationId": format!("{}{name}", method.to_lowercase()),
        "summary": offered.about,
        "description": refusals(offered),
        "parameters": parameters,
        "responses": { "200": { "description": "The result, in the format that Accept names", "content": both(&answer) } },
    });
    if let Some(form) = form {
        operation["requestBody"] =
            json!({ "required": offered.query.is_empty(), "content": both(&schema(form)) });
    }
    if offered.form.is_none() && !offered.query.is_empty() {
        let bytes = json!({ "schema": { "type": "string", "format": "binary" } });
        let content = json!({ "application/octet-stream": bytes });
        if method == "POST" {
            operation["requestBody"] = json!({ "required": true, "content": content });
        } else {
            operation["responses"]["200"]["content"]["audio/wav"] = bytes;
        }
    }
    operation
}

/// A group of values, or values beside the statusCode.
fn answer(offered: &Operation) -> Value {
    let fields = offered.answer.fields;
    let Some(group) = offered.answer.group else {
        return object([&STATUS_CODE].into_iter().chain(fields));
    };
    let mut whole = object([&STATUS_CODE]);
    whole["properties"][group] = object(fields);
    whole["required"] = json!([STATUS_CODE.name, group]);
    whole
}

/// The download of a bill file, which needs only its token.
fn fetch() -> Value {
    let csv = json!({ "text/csv": { "schema": { "type": "string" } } });
    let refusal = json!({ "schema": { "$ref": "#/components/schemas/Refusal" } });
    json!({
        "operationId": "fetchBill",
        "summary": "Fetch a bill file; Range, ETag and gzip are understood",
        "security": [],
        "parameters": [{ "name": "token", "in": "query", "required": true, "schema": { "type": "string" } }],
        "responses": {
            "200": { "description": "The file", "content": csv },
            "206": { "description": "The part that Range names", "content": csv },
            "403": { "description": "190009: the token is not good for this file",
                "content": { "application/xml": refusal, "application/json": refusal } },
        },
    })
}

fn schema(form: &Form) -> Value {
    let mut schema = object(form.fields);
    schema["xml"] = json!({ "name": form.root });
    schema
}

fn object<'a>(fields: impl IntoIterator<Item = &'a Field>) -> Value {
    let (mut properties, mut required) = (serde_json::Map::new(), Vec::new());
    for field in fields {
        properties.insert(field.name.to_owned(), text(field.rule));
        required.extend(field.required.then_some(field.name));
    }
    json!({ "type": "object", "required": required, "properties": properties })
}

/// When it is refused, beside the reasons of every request.
fn refusals(offered: &Operation) -> String {
    let refusals = offered.refusals();
    let refusals = refusals.map(|(code, when)| format!("{}: {when}.", code.code()));
    refusals.collect::<Vec<_>>().join(" ")
}

fn refusal() -> Value {
    let codes: Vec<_> = StatusCode::ALL
        .iter()
        .filter(|code| **code != StatusCode::Success)
        .collect();
    let table: Vec<_> = codes
        .iter()
        .map(|code| format!("{} {}", code.code(), code.meaning()))
        .collect();
    json!({ "type": "object", "required": ["statusCode", "statusMsg"], "properties": {
        "statusCode": { "type": "string", "enum": codes.iter().map(|code| code.code()).collect::<Vec<_>>(), "description": table.join("; ") },
        "statusMsg": text("A sentence that names the field and the rule.") } })
}
