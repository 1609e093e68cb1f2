//! What an account has paid, read without any of our own code.

use clarion::store::Database;

use super::checker::Spending;
use crate::support::postgres;

/// When all calls are over, where this was the balance before the first of them.
pub async fn spending(database: &Database, balance: i64) -> Spending {
    let query = format!(
        "SELECT {balance} - balance, (SELECT CAST(coalesce(sum(fee), 0) AS BIGINT) FROM bill_lines), reserved, \
         (SELECT count(*) FROM call_reservations) FROM accounts"
    );
    let [paid, billed, reserved, reservations] = match database {
        Database::Sqlite(path) => {
            let db = rusqlite::Connection::open(path).unwrap();
            db.query_row(&query, [], |row| {
                Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?])
            })
            .unwrap()
        }
        Database::Postgres(config) => {
            let client = postgres::connect(config.url()).await;
            let row = client.query_one(&query, &[]).await.unwrap();
            [0, 1, 2, 3].map(|column| row.get(column))
        }
    };
    Spending {
        paid,
        billed,
        reserved,
        reservations,
    }
}
