//! How nodes share trunks in PostgreSQL: each has a row with its part, and changes only its own, one node at a time for each trunk.

use super::session::Session;
use super::{column, query_in};
use crate::domain::claim::NodeId;
use crate::domain::trunk_grants::{GrantRequest, NodePart, TrunkGrant, regrant};
use crate::store::StoreError;
use crate::store::columns::Columns;
use crate::store::statements::postgres;

/// The first of the two numbers of the advisory locks on trunks. Any serves that nobody else uses.
const TRUNK_LOCKS: i32 = 0x7472_756e;

/// What another node is just asking about is passed over, not waited for.
const LOCK: &str = postgres!(
    "SELECT trunk FROM unnest($1::text[]) AS wanted (trunk) WHERE pg_try_advisory_xact_lock($2, hashtext(trunk))"
);
/// The part of a node that is gone is free when its calls have been recovered and it has had a moment to hang up.
const FORGET: &str = postgres!(
    "DELETE FROM trunk_grants WHERE trunk = ANY($1) AND NOT EXISTS (SELECT 1 FROM nodes \
       WHERE nodes.node = trunk_grants.node AND nodes.lease_until > {now} - {moment}) \
       AND NOT EXISTS (SELECT 1 FROM call_queue WHERE call_queue.node = trunk_grants.node)"
);
const PARTS: &str = postgres!(
    "SELECT trunk, node, channels, rate, in_use, wanting_since, {now}, question FROM trunk_grants WHERE trunk = ANY($1) \
     UNION ALL SELECT '', '', 0, 0, 0, NULL, {now}, 0 ORDER BY 1, 2"
);
const KEEP: &str = postgres!(
    "INSERT INTO trunk_grants (trunk, node, channels, rate, in_use, wanting_since, question) \
       SELECT trunk, $1, channels, rate, in_use, wanting_since, question \
       FROM unnest($2::text[], $3::integer[], $4::bigint[], $5::integer[], $6::bigint[], $7::bigint[]) \
         AS own (trunk, channels, rate, in_use, wanting_since, question) \
     ON CONFLICT (trunk, node) DO UPDATE SET channels = excluded.channels, rate = excluded.rate, in_use = excluded.in_use, \
       wanting_since = excluded.wanting_since, question = excluded.question"
);
pub(super) const LEAVE: &str = postgres!(
    "DELETE FROM trunk_grants WHERE node = $1 AND NOT EXISTS (SELECT 1 FROM call_queue WHERE call_queue.node = $1)"
);

pub(super) async fn share(
    client: &mut Session,
    node: &NodeId,
    requests: &[GrantRequest],
) -> Result<Vec<(String, TrunkGrant)>, StoreError> {
    let trunks = column(requests, |request| request.trunk.as_str());
    let seen = TrunkParts::read(client, &trunks).await?;
    // Most of the time nothing changes, and nobody has to be asked to hold still.
    if let Some(grants) = requests
        .iter()
        .map(|request| seen.settled(node, request))
        .collect()
    {
        return Ok(grants);
    }
    let transaction = client.transaction().await?;
    let locked = query_in(&transaction, LOCK, &[&trunks, &TRUNK_LOCKS]).await?;
    let locked = locked.iter().map(|row| row.string(0));
    let locked = locked.collect::<Result<Vec<_>, _>>()?;
    query_in(&transaction, FORGET, &[&locked]).await?;
    let names: Vec<_> = locked.iter().map(String::as_str).collect();
    let seen = TrunkParts::read(&transaction, &names).await?;
    let mut kept = Vec::new();
    let mut grants = Vec::new();
    for request in requests
        .iter()
        .filter(|request| locked.contains(&request.trunk))
    {
        let (_, part, grant) = seen.regrant(node, request);
        kept.push((request.trunk.as_str(), part));
        grants.push((request.trunk.clone(), grant));
    }
    let integer = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    let values: super::Values<'_> = &[
        &node.as_str(),
        &column(&kept, |(trunk, _)| *trunk),
        &column(&kept, |(_, part)| integer(part.channels)),
        &column(&kept, |(_, part)| part.rate),
        &column(&kept, |(_, part)| integer(part.in_use)),
        &column(&kept, |(_, part)| part.wanting_since),
        &column(&kept, |(_, part)| part.question),
    ];
    query_in(&transaction, KEEP, values).await?;
    transaction.commit().await?;
    Ok(grants)
}

/// Who has which part of which trunk.
struct TrunkParts {
    /// Trunk, node and its part.
    parts: Vec<(String, String, NodePart)>,
    now: i64,
}

impl TrunkParts {
    async fn read(session: &Session, trunks: &[&str]) -> Result<Self, StoreError> {
        let mut seen = Self {
            parts: Vec::new(),
            now: 0,
        };
        for row in session.query(PARTS, &[&trunks]).await? {
            seen.now = row.number(6)?;
            let part = NodePart {
                channels: row.number(2)?,
                rate: row.number(3)?,
                in_use: row.number(4)?,
                wanting_since: row.optional_number(5)?,
                question: row.number(7)?,
            };
            seen.parts.push((row.string(0)?, row.string(1)?, part));
        }
        Ok(seen)
    }

    /// The part of this node as it is, as it shall be, and what that lets it use.
    fn regrant(
        &self,
        node: &NodeId,
        request: &GrantRequest,
    ) -> (Option<NodePart>, NodePart, TrunkGrant) {
        let of_trunk = self
            .parts
            .iter()
            .filter(|(trunk, ..)| *trunk == request.trunk);
        let (own, others): (Vec<_>, Vec<_>) = of_trunk.partition(|(_, of, _)| of == node.as_str());
        let rank = others
            .iter()
            .filter(|(_, of, _)| of.as_str() < node.as_str());
        let rank = u32::try_from(rank.count()).unwrap_or(u32::MAX);
        let own = own.first().map(|(.., part)| *part);
        let others: Vec<_> = others.iter().map(|(.., part)| *part).collect();
        let (part, grant) = regrant(request, own.unwrap_or_default(), &others, rank, self.now);
        (own, part, grant)
    }

    /// The grant of a node whose part stays as it is written down. One that wants more has parts of nodes that are gone forgotten.
    fn settled(&self, node: &NodeId, request: &GrantRequest) -> Option<(String, TrunkGrant)> {
        let (own, part, grant) = self.regrant(node, request);
        let is_settled = own.is_some_and(|own| part.is_as(own))
            && !request.wants_more
            && !request.is_after_doubt;
        is_settled.then(|| (request.trunk.clone(), grant))
    }
}
