//! The parts of trunks: each node changes only its own.

use clarion::domain::claim::{LeaseEnd, NodeId};
use clarion::domain::trunk_grants::{GrantRequest, TrunkGrant, regrant};

use super::QueueModel;

/// The part of a node that is gone is free after so many milliseconds, when its calls have been recovered.
const MOMENT: i64 = 5000;

impl QueueModel {
    pub fn share(
        &mut self,
        node: &NodeId,
        requests: Vec<GrantRequest>,
    ) -> Vec<(String, TrunkGrant)> {
        if self.lease_end == LeaseEnd::Process {
            let whole = |request: GrantRequest| (request.trunk, TrunkGrant::whole(request.whole));
            return requests.into_iter().map(whole).collect();
        }
        self.forget_parts();
        let requests = requests.into_iter();
        requests
            .map(|request| {
                let grant = self.regrant(node, &request);
                (request.trunk, grant)
            })
            .collect()
    }

    fn forget_parts(&mut self) {
        let (nodes, calls, now) = (&self.nodes, &self.calls, self.now);
        let is_there = |node: &str| {
            nodes
                .get(node)
                .is_some_and(|row| row.lease_until > now - MOMENT)
        };
        let holds = |node: &str| {
            calls
                .values()
                .any(|call| call.holder().is_some_and(|holder| holder.as_str() == node))
        };
        self.parts
            .retain(|(_, node), _| is_there(node) || holds(node));
    }

    fn regrant(&mut self, node: &NodeId, request: &GrantRequest) -> TrunkGrant {
        let of_trunk = self
            .parts
            .iter()
            .filter(|((trunk, _), _)| *trunk == request.trunk);
        let others: Vec<_> = of_trunk
            .filter(|((_, of), _)| of.as_str() != node.as_str())
            .map(|((_, of), part)| (of.as_str(), *part))
            .collect();
        let rank = others.iter().filter(|(of, _)| *of < node.as_str()).count();
        let rank = u32::try_from(rank).expect("a few");
        let others: Vec<_> = others.into_iter().map(|(_, part)| part).collect();
        let own = (request.trunk.clone(), node.to_string());
        let last = self.parts.get(&own).copied().unwrap_or_default();
        let (part, grant) = regrant(request, last, &others, rank, self.now);
        self.parts.insert(own, part);
        grant
    }

    /// A node stops in good order.
    pub fn leave(&mut self, node: &NodeId) {
        if self.held_calls(node).is_empty() {
            self.parts.retain(|(_, of), _| of.as_str() != node.as_str());
            // A claim that is still on its way finds the name of whoever it is for.
            match self.lease_end {
                LeaseEnd::Process => drop(self.nodes.remove(node.as_str())),
                LeaseEnd::Time => {
                    if let Some(row) = self.nodes.get_mut(node.as_str()) {
                        row.lease_until = row.lease_until.min(self.now);
                    }
                }
            }
        }
    }
}
