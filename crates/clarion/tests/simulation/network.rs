//! The telephone network: what the callees do by themselves, whoever calls them, and what became of every INVITE that reached it.

use std::time::Duration;

use clarion::domain::claim::NodeId;
use clarion::domain::outcome::Outcome;
use phone::ending::Cause;
use tokio::time::Instant;

use crate::chance::Chance;
use crate::model::QueueModel;

/// A callee who gets no ACK for his answer gives up after this time (RFC 3261: 64 times T1).
const UNACKNOWLEDGED: Duration = Duration::from_secs(32);
/// A network lets nothing ring for longer than this.
const LONGEST_RING: Duration = Duration::from_secs(60);
/// Whoever says nothing for this long is not there.
pub const SILENCE: Duration = Duration::from_secs(8);

#[derive(Debug, Default)]
pub struct Network {
    legs: Vec<NetworkLeg>,
}

/// What a callee does with a call.
#[derive(Debug, Clone, Copy)]
pub struct Script {
    /// The first INVITE is lost on its way, and only its repetition arrives.
    pub is_lost: bool,
    pub rings_after: Option<Duration>,
    pub then: Then,
    /// What the callee who hears the message presses, and after how long.
    pub presses: Option<(Duration, Pressed)>,
}

/// Keys that a callee presses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pressed {
    Confirm,
    /// Twice.
    Stop,
}

#[derive(Debug, Clone, Copy)]
pub enum Then {
    /// After this time, and hangs up after the second.
    Answers(Duration, Duration),
    Refuses(Duration, u16, Cause),
    /// Nothing comes back any more.
    Nothing,
}

impl Script {
    pub fn draw(chance: &mut Chance) -> Self {
        let rings_after = (!chance.one_in(4)).then(|| chance.millis(1..600));
        let after = chance.millis(1..6000);
        let then = match chance.below(12) {
            0..6 => Then::Answers(after, chance.millis(1..8000)),
            6 => Then::Refuses(after, 486, Cause::Busy),
            7 => Then::Refuses(after, 603, Cause::Declined),
            8 | 9 => Then::Refuses(after, 503, Cause::Unavailable),
            10 => Then::Refuses(after, 404, Cause::NoRoute),
            _ => Then::Nothing,
        };
        Self {
            is_lost: chance.one_in(16),
            rings_after,
            then,
            presses: (!chance.one_in(3)).then(|| {
                let pressed = if chance.one_in(5) {
                    Pressed::Stop
                } else {
                    Pressed::Confirm
                };
                (chance.millis(1..4000), pressed)
            }),
        }
    }
}

/// One INVITE that reached the network.
#[derive(Debug, Clone)]
pub struct NetworkLeg {
    pub sid: String,
    /// The attempt that it belongs to, by the id of its bill line.
    pub order: String,
    pub call_id: String,
    pub node: NodeId,
    pub trunk: String,
    script: Script,
    sent_at: Instant,
    /// As it stands: it changes when somebody acknowledges or hangs up.
    over_at: Instant,
    is_acknowledged: bool,
    /// What the callee has pressed, where it was asked for.
    pub pressed: Option<Pressed>,
    /// The callee has heard that it was understood.
    pub is_thanked: bool,
}

impl NetworkLeg {
    pub fn rings_at(&self) -> Option<Instant> {
        let rings_at = self.sent_at + self.script.rings_after?;
        (rings_at < self.final_at()).then_some(rings_at)
    }

    /// When it is answered or refused, or nobody waits for that any more.
    pub fn final_at(&self) -> Instant {
        self.sent_at
            + match self.script.then {
                Then::Answers(after, _) | Then::Refuses(after, ..) => after,
                Then::Nothing if self.script.rings_after.is_some() => LONGEST_RING,
                Then::Nothing => SILENCE,
            }
    }

    pub fn then(&self) -> Then {
        self.script.then
    }

    pub fn presses(&self) -> Option<(Duration, Pressed)> {
        self.script.presses
    }

    pub fn over_at(&self) -> Instant {
        self.over_at
    }

    fn is_up(&self) -> bool {
        Instant::now() < self.over_at
    }

    fn answered_at(&self) -> Option<Instant> {
        let is_answered = matches!(self.script.then, Then::Answers(..));
        Some(self.final_at()).filter(|at| is_answered && *at <= self.over_at)
    }

    fn has_rung(&self) -> bool {
        self.rings_at().is_some_and(|at| at <= self.over_at) || self.answered_at().is_some()
    }

    /// It was refused, or nobody was there, before anything rang: another trunk may be tried.
    fn was_refused(&self) -> bool {
        let refused = matches!(
            self.script.then,
            Then::Refuses(_, _, Cause::Unavailable) | Then::Nothing
        );
        let is_known = self.final_at() <= self.over_at.min(Instant::now());
        refused && !self.has_rung() && is_known
    }
}

impl Network {
    pub fn invite(
        &mut self,
        (sid, order, call_id): (String, String, String),
        node: &NodeId,
        trunk: &str,
        script: Script,
    ) -> usize {
        let now = Instant::now();
        let mut leg = NetworkLeg {
            sid,
            order,
            call_id,
            node: node.clone(),
            trunk: trunk.to_owned(),
            script,
            sent_at: now,
            over_at: now,
            is_acknowledged: false,
            pressed: None,
            is_thanked: false,
        };
        leg.over_at = leg.final_at();
        if let Then::Answers(..) = script.then {
            leg.over_at += UNACKNOWLEDGED;
        }
        self.legs.push(leg);
        self.legs.len() - 1
    }

    pub fn leg(&self, leg: usize) -> &NetworkLeg {
        &self.legs[leg]
    }

    pub fn legs(&self) -> &[NetworkLeg] {
        &self.legs
    }

    /// The callee who answered hears the message from now on. False if nobody is there any more.
    pub fn acknowledge(&mut self, leg: usize) -> bool {
        let leg = &mut self.legs[leg];
        let is_up = leg.is_up();
        if let Then::Answers(_, listens) = leg.script.then
            && is_up
        {
            leg.is_acknowledged = true;
            leg.over_at = Instant::now() + listens;
        }
        is_up
    }

    pub fn press(&mut self, leg: usize, pressed: Pressed) {
        self.legs[leg].pressed = Some(pressed);
    }

    /// The callee hears that it was understood.
    pub fn thank(&mut self, leg: usize) {
        self.legs[leg].is_thanked = true;
    }

    /// CANCEL, and BYE where somebody has answered.
    pub fn hang_up(&mut self, leg: usize) {
        let leg = &mut self.legs[leg];
        leg.over_at = leg.over_at.min(Instant::now());
    }

    /// What another process does by a dialog snapshot: a CANCEL does nothing to a leg that was answered.
    pub fn end_orphan(&mut self, call_id: &str, was_answered: bool) {
        let now = Instant::now();
        let of_call = self.legs.iter_mut().filter(|leg| leg.call_id == call_id);
        for leg in of_call.filter(|leg| leg.is_up()) {
            if was_answered || leg.answered_at().is_none_or(|at| now < at) {
                leg.over_at = now;
            }
        }
    }

    /// Legs that are up now, of a trunk.
    pub fn up_on<'a>(&'a self, trunk: &'a str) -> impl Iterator<Item = &'a NetworkLeg> {
        let legs = self.legs.iter().filter(move |leg| leg.trunk == trunk);
        legs.filter(|leg| leg.is_up())
    }

    pub fn legs_up(&self) -> usize {
        self.legs.iter().filter(|leg| leg.is_up()).count()
    }

    pub fn invites(&self) -> impl Iterator<Item = &NetworkLeg> {
        self.legs.iter()
    }

    pub fn refused(&self) -> impl Iterator<Item = &NetworkLeg> {
        self.legs.iter().filter(|leg| leg.was_refused())
    }

    /// An INVITE of this attempt that was not refused before anything rang: nobody may dial it again.
    pub fn was_dialled(&self, order: &str) -> bool {
        let of_attempt = self.legs.iter().filter(|leg| leg.order == order);
        of_attempt.filter(|leg| !leg.was_refused()).count() > 0
    }

    /// The most INVITEs of a trunk in any second.
    pub fn most_in_a_second(&self, trunk: &str) -> usize {
        // One that was lost left half a second before it arrived.
        let of_trunk = |leg: &&NetworkLeg| leg.trunk == trunk && !leg.script.is_lost;
        let sent = self.legs.iter().filter(of_trunk).map(|leg| leg.sent_at);
        let sent: Vec<_> = sent.collect();
        let within = |first: &Instant| {
            let until = *first + Duration::from_secs(1);
            sent.iter()
                .filter(|at| (*first..until).contains(at))
                .count()
        };
        sent.iter().map(within).max().unwrap_or(0)
    }

    fn has_pressed(&self, order: &str, pressed: Pressed) -> bool {
        let of_attempt = |leg: &&NetworkLeg| leg.order == order;
        let mut of_attempt = self.legs.iter().filter(of_attempt);
        of_attempt.any(|leg| leg.pressed == Some(pressed))
    }

    /// Calls whose record contradicts what the network has seen.
    pub fn contradictions(&self, model: &QueueModel) -> Vec<String> {
        let mut wrong = Vec::new();
        for line in &model.bill_lines {
            let sid = line.claimed.attempt.order_id(line.sid());
            let answered = self
                .legs
                .iter()
                .any(|leg| leg.order == sid && leg.is_acknowledged);
            match line.outcome {
                Outcome::Talked | Outcome::Unconfirmed if !answered => {
                    let outcome = line.outcome.as_str();
                    wrong.push(format!(
                        "{sid} ended as {outcome}, and nobody was talked to"
                    ));
                }
                Outcome::Confirmed if !self.has_pressed(&sid, Pressed::Confirm) => {
                    wrong.push(format!("{sid} ended as confirmed, and nobody confirmed it"));
                }
                Outcome::Stopped if !self.has_pressed(&sid, Pressed::Stop) => {
                    wrong.push(format!("{sid} ended as stopped, and nobody asked for that"));
                }
                Outcome::Expired | Outcome::NoRoute | Outcome::PromptFailed
                    if self.was_dialled(&sid) =>
                {
                    let outcome = line.outcome.as_str();
                    wrong.push(format!("{sid} ended as {outcome} although it was dialled"));
                }
                _ => {}
            }
        }
        wrong
    }
}
