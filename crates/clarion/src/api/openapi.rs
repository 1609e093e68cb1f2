//! The API as an OpenAPI document, made from the same tables that read requests and write answers.

use axum::Json;
use serde_json::{Value, json};

use super::wire::Form;
use super::{bill_records, call_result, landing_calls};
use crate::domain::status_code::StatusCode;

pub async fn document() -> Json<Value> {
    Json(describe())
}

pub fn describe() -> Value {
    let landing_call = group("LandingCall", &["callSid", "dateCreated", "orderid"]);
    let bill = json!({ "type": "object", "required": ["statusCode"], "properties": {
        "statusCode": text("000000"), "downurl": text("Download address; downUrl in XML."), "token": text("Download check code.") } });
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Clarion",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
            "description": "Voice notification and bill download. Answers are HTTP 200 whatever the statusCode; 000000 is success.",
        },
        "paths": {
            "/{SoftVersion}/Accounts/{accountSid}/Calls/LandingCalls": {
                "parameters": path_parameters(),
                "post": operation("placeCall", "Call a number and play voice files or a spoken text", &[], Some(&landing_calls::FORM), &landing_call),
            },
            "/{SoftVersion}/Accounts/{accountSid}/Calls/MediaFileUpload": {
                "parameters": path_parameters(),
                "post": upload(),
            },
            "/{SoftVersion}/Accounts/{accountSid}/BillRecords": {
                "parameters": path_parameters(),
                "post": operation("requestBill", "Ask for the previous day's bill", &[], Some(&bill_records::FORM), &bill),
            },
            "/bills/{file}": {
                "parameters": [{ "name": "file", "in": "path", "required": true, "description": "From downUrl", "schema": { "type": "string" } }],
                "get": fetch(),
            },
            "/{SoftVersion}/Accounts/{accountSid}/CallResult": {
                "parameters": path_parameters(),
                "get": operation("callResult", "How far a call has come", &["callsid"], None, &group("CallResult", &["state", "duration"])),
                "post": operation("callResultByPost", "How far a call has come", &["callsid"], Some(&call_result::FORM), &group("CallResult", &["state", "duration"])),
            },
            "/{SoftVersion}/Accounts/{accountSid}/AccountInfo": {
                "parameters": path_parameters(),
                "get": operation("accountInfo", "The account", &[], None, &group("Account", &["friendlyName", "status", "balance", "dateCreated"])),
            },
        },
        "components": {
            "securitySchemes": {
                "authorization": { "type": "apiKey", "in": "header", "name": "Authorization",
                    "description": "Base64(accountSid + ':' + timestamp), timestamp yyyyMMddHHmmss" },
                "sig": { "type": "apiKey", "in": "query", "name": "sig",
                    "description": "MD5(accountSid + authToken + timestamp), 32 hex digits, with the timestamp of Authorization" },
            },
            "schemas": { "Refusal": refusal() },
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

fn operation(
    id: &str,
    summary: &str,
    query: &[&str],
    body: Option<&Form>,
    answer: &Value,
) -> Value {
    let both = |schema: Value| json!({ "application/xml": { "schema": schema }, "application/json": { "schema": schema } });
    let parameters: Vec<_> =
        query.iter().map(|name| json!({ "name": name, "in": "query", "required": body.is_none(), "schema": { "type": "string" } })).collect();
    let answer = json!({ "oneOf": [answer, { "$ref": "#/components/schemas/Refusal" }], "xml": { "name": "Response" } });
    let mut operation = json!({
        "operationId": id,
        "summary": summary,
        "parameters": parameters,
        "responses": { "200": { "description": "The result, in the format that Accept names", "content": both(answer) } },
    });
    if let Some(form) = body {
        operation["requestBody"] =
            json!({ "required": query.is_empty(), "content": both(schema(form)) });
    }
    operation
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

/// The upload, whose body is the file itself.
fn upload() -> Value {
    let answer = json!({ "type": "object", "required": ["statusCode"], "properties": {
        "statusCode": text("000000"), "downloadUrl": text("Where the file can be fetched again, signed like any request; in XML only.") } });
    let mut operation = operation(
        "uploadVoiceFile",
        "Add a voice file, or a zip of them, to an application",
        &["appid", "filename"],
        None,
        &answer,
    );
    let bytes = json!({ "schema": { "type": "string", "format": "binary" } });
    operation["requestBody"] =
        json!({ "required": true, "content": { "application/octet-stream": bytes } });
    operation
}

fn schema(form: &Form) -> Value {
    let properties: serde_json::Map<_, _> = form
        .fields
        .iter()
        .map(|field| (field.name.to_owned(), text(field.rule)))
        .collect();
    let required: Vec<_> = form
        .fields
        .iter()
        .filter(|field| field.required)
        .map(|field| field.name)
        .collect();
    json!({ "type": "object", "required": required, "properties": properties, "xml": { "name": form.root } })
}

fn group(name: &str, values: &[&str]) -> Value {
    let inner: serde_json::Map<_, _> = values
        .iter()
        .map(|value| ((*value).to_owned(), json!({ "type": "string" })))
        .collect();
    json!({ "type": "object", "required": ["statusCode", name],
        "properties": { "statusCode": text("000000"), name: { "type": "object", "properties": inner } } })
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
