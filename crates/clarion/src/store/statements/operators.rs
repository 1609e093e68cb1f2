//! Operators of the console, and their sign-ins.

use jiff::Timestamp;

use super::{Statement, statement};
use crate::domain::operator::{
    Operator, OperatorChange, OperatorName, OperatorRole, PasswordDigest, SignIn,
};
use crate::store::StoreError;
use crate::store::binding::Bind;
use crate::store::columns::Columns;

/// What an operator is read from.
const OPERATOR: &str = "name, role, password, created_at, changed_at, generation";

pub const ALL: Statement = statement!(
    "SELECT ",
    OPERATOR,
    " FROM operators ORDER BY name{bytewise}"
);
pub const FIND: Statement = statement!("SELECT ", OPERATOR, " FROM operators WHERE name = $1");
pub const ADD: Statement = statement!(
    "INSERT INTO operators (",
    OPERATOR,
    ") VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING"
);
pub const CHANGE: Statement = statement!(
    "UPDATE operators SET role = coalesce($2, role), password = coalesce($3, password), changed_at = $4, \
       generation = generation + CASE WHEN CAST($3 AS TEXT) IS NULL THEN 0 ELSE 1 END WHERE name = $1 RETURNING ",
    OPERATOR
);
pub const REMOVE: Statement = statement!("DELETE FROM operators WHERE name = $1");

pub const ADD_SIGN_IN: Statement = statement!(
    "INSERT INTO sign_ins (id_hash, operator, generation, form_token, address, created_at, seen_at, expires_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
);
pub const FORGET_EXPIRED: Statement = statement!("DELETE FROM sign_ins WHERE expires_at <= $1");
pub const SIGN_IN: Statement = statement!(
    "SELECT id_hash, operator, sign_ins.generation, form_token, address, sign_ins.created_at, seen_at, expires_at, operators.role \
     FROM sign_ins JOIN operators ON operators.name = sign_ins.operator AND operators.generation = sign_ins.generation \
     WHERE id_hash = $1 AND expires_at > $2"
);
pub const RENEW_SIGN_IN: Statement =
    statement!("UPDATE sign_ins SET seen_at = $2, expires_at = $3 WHERE id_hash = $1");
pub const END_SIGN_IN: Statement = statement!("DELETE FROM sign_ins WHERE id_hash = $1");

pub fn operator(row: &impl Columns) -> Result<Operator, StoreError> {
    Ok(Operator {
        name: row.parsed(0)?,
        role: row.parsed(1)?,
        password: PasswordDigest::new(row.string(2)?),
        created_at: row.time(3)?,
        changed_at: row.time(4)?,
        generation: row.number(5)?,
    })
}

pub fn sign_in(row: &impl Columns) -> Result<(SignIn, OperatorRole), StoreError> {
    let sign_in = SignIn {
        id_hash: row.string(0)?,
        operator: row.parsed(1)?,
        generation: row.number(2)?,
        form_token: row.string(3)?,
        address: row.string(4)?,
        created_at: row.time(5)?,
        seen_at: row.time(6)?,
        expires_at: row.time(7)?,
    };
    Ok((sign_in, row.parsed(8)?))
}

/// The values of `ADD`.
pub fn values(operator: &Operator) -> [Bind<'_>; 6] {
    [
        Bind::of(operator.name.as_str()),
        Bind::of(operator.role.as_str()),
        Bind::of(operator.password.as_str()),
        Bind::of(operator.created_at),
        Bind::of(operator.changed_at),
        Bind::of(operator.generation),
    ]
}

/// The values of `CHANGE`.
pub fn change_values<'a>(name: &'a OperatorName, change: &'a OperatorChange) -> [Bind<'a>; 4] {
    let password = change.password.as_ref();
    [
        Bind::of(name.as_str()),
        Bind::of(change.role.map(OperatorRole::as_str)),
        Bind::of(password.map(PasswordDigest::as_str)),
        Bind::of(change.at),
    ]
}

/// The values of `ADD_SIGN_IN`.
pub fn sign_in_values(sign_in: &SignIn) -> [Bind<'_>; 8] {
    [
        Bind::of(&sign_in.id_hash),
        Bind::of(sign_in.operator.as_str()),
        Bind::of(sign_in.generation),
        Bind::of(&sign_in.form_token),
        Bind::of(&sign_in.address),
        Bind::of(sign_in.created_at),
        Bind::of(sign_in.seen_at),
        Bind::of(sign_in.expires_at),
    ]
}

/// The values of `RENEW_SIGN_IN`.
pub fn renewal_values(id_hash: &str, seen: Timestamp, expires: Timestamp) -> [Bind<'_>; 3] {
    [Bind::of(id_hash), Bind::of(seen), Bind::of(expires)]
}
