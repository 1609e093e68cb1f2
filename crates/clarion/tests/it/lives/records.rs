//! What a database says of its calls, read without any of our own code.

use std::collections::BTreeMap;

use clarion::store::Database;

use crate::support::postgres;

/// How many attempts every notice has.
pub async fn attempts(database: &Database) -> BTreeMap<String, u64> {
    let query = "SELECT calls.call_sid, CAST(NULL AS TEXT), count(attempts.attempt) FROM calls \
                 LEFT JOIN attempts ON attempts.call_sid = calls.call_sid WHERE calls.notice IS NOT NULL GROUP BY calls.call_sid";
    let counted = rows(database, query).await.into_iter();
    counted
        .map(|(sid, (_, attempts))| (sid, attempts))
        .collect()
}

/// Outcome and number of bill lines of every call.
pub async fn records(database: &Database) -> BTreeMap<String, (Option<String>, u64)> {
    let query = "SELECT calls.call_sid, max(bill_lines.outcome), count(bill_lines.order_id) FROM calls \
                 LEFT JOIN bill_lines ON bill_lines.call_sid = calls.call_sid WHERE calls.outcome IS NOT NULL GROUP BY calls.call_sid";
    rows(database, query).await
}

async fn rows(database: &Database, query: &str) -> BTreeMap<String, (Option<String>, u64)> {
    match database {
        Database::Sqlite(path) => {
            let db = rusqlite::Connection::open(path).unwrap();
            let mut statement = db.prepare(query).unwrap();
            let rows = statement.query_map([], |row| {
                Ok((
                    row.get(0)?,
                    (row.get(1)?, row.get::<_, i64>(2)?.unsigned_abs()),
                ))
            });
            rows.unwrap().map(Result::unwrap).collect()
        }
        Database::Postgres(config) => {
            let rows = postgres::connect(config.url())
                .await
                .query(query, &[])
                .await
                .unwrap();
            rows.iter()
                .map(|row| {
                    (
                        row.get(0),
                        (row.get(1), row.get::<_, i64>(2).unsigned_abs()),
                    )
                })
                .collect()
        }
    }
}
