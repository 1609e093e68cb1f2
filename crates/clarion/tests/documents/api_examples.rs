//! Every operation of the API has an example in XML and one in JSON that succeed. `it/documents/shell.rs` runs them and compares the answers with those
//! that are shown; here the answers that are shown are compared with the tables of the operations.

use clarion::api::operations::{OPERATIONS, Operation};

use super::blocks::{Block, blocks};
use super::root;

/// The operation that the last request of a shell block is for, without its query.
fn asked(block: &Block) -> Option<&str> {
    let request = block.text.rsplit("ask ").next()?;
    let operation = request.split_whitespace().nth(1)?.trim_matches('"');
    operation.split('?').next()
}

/// The names of the values that an answer has beside its statusCode; `None` if it is a refusal.
fn answered(block: &Block, operation: &Operation) -> Option<Vec<String>> {
    let text = block.text.trim();
    let values: Vec<String> = if block.language == "json" {
        let answer: serde_json::Value = serde_json::from_str(text).unwrap();
        if answer["statusCode"] != "000000" {
            return None;
        }
        let values = operation
            .answer
            .group
            .map_or(&answer, |group| &answer[group]);
        let values = values.as_object().into_iter();
        values.flat_map(|values| values.keys().cloned()).collect()
    } else {
        let success = "<Response><statusCode>000000</statusCode>";
        let (_, values) = text.split_once(success)?;
        let names = values.split('<').filter(|part| !part.starts_with('/'));
        let names = names.filter_map(|part| Some(part.split_once('>')?.0.to_owned()));
        names.collect()
    };
    let group = operation.answer.group.unwrap_or("statusCode");
    Some(values.into_iter().filter(|name| name != group).collect())
}

#[test]
fn every_operation_has_an_example_in_xml_and_in_json_whose_answer_is_that_of_its_table() {
    let name = "docs/api.md";
    let text = std::fs::read_to_string(root().join(name)).unwrap();
    let blocks = blocks(name, &text);
    let pairs: Vec<_> = blocks.iter().zip(blocks.iter().skip(1)).collect();
    for operation in OPERATIONS {
        let examples = pairs.iter().filter(|(request, _)| {
            request.language == "sh" && asked(request) == Some(operation.path)
        });
        let answers: Vec<_> = examples
            .filter_map(|(_, answer)| Some((answer, answered(answer, operation)?)))
            .collect();
        for format in ["xml", "json"] {
            let shown = answers.iter().any(|(block, _)| block.language == format);
            assert!(shown, "{} has no example in {format}", operation.path);
        }
        for (block, values) in answers {
            let place = block.place();
            let fields = operation.answer.fields;
            for value in &values {
                let known = fields.iter().any(|field| field.name == value);
                assert!(known, "{place}: nothing is said of {value}");
            }
            for field in fields.iter().filter(|field| field.required) {
                let there = values.iter().any(|value| value == field.name);
                assert!(there, "{place}: no {}", field.name);
            }
        }
    }
}
