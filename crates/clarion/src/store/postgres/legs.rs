//! The legs of a call in PostgreSQL: written by the statement that ends the call or puts it back into the queue.

use tokio_postgres::types::ToSql;

use crate::domain::leg::Leg;
use crate::store::binding::Bind;
use crate::store::statements::legs::{self, LEG, LEG_COLUMNS};
use crate::store::statements::postgres;

/// A part of a statement whose first values are the columns of the legs. Its part `ours` is the call's row in the queue, with its attempt and
/// the number of legs that were stored before.
pub const KEEP_LEGS: &str = postgres!(
    "legs_kept AS (INSERT INTO legs (call_sid, attempt, leg, ",
    LEG,
    ") SELECT ours.call_sid, ours.attempt, ours.legs_before + place, ",
    LEG,
    " FROM ours CROSS JOIN unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], \
       $8::smallint[], $9::smallint[], $10::text[], $11::smallint[], $12::text[], $13::integer[], $14::integer[], $15::integer[], \
       $16::integer[], $17::integer[], $18::integer[], $19::text[], $20::text[], $21::integer[], $22::integer[], $23::integer[], \
       $24::integer[], $25::text[], $26::text[]) WITH ORDINALITY AS leg (",
    LEG,
    ", place))"
);

/// The first values of such a statement: an array for each column.
pub fn columns(kept: &[Leg]) -> Vec<Box<dyn ToSql + Send + Sync>> {
    let mut columns: [Vec<Bind<'static>>; LEG_COLUMNS] = [const { Vec::new() }; LEG_COLUMNS];
    for leg in kept {
        for (column, value) in columns.iter_mut().zip(legs::values(leg)) {
            column.push(value.into_owned());
        }
    }
    let boxed = |column| Box::new(column) as Box<dyn ToSql + Send + Sync>;
    columns.into_iter().map(boxed).collect()
}
