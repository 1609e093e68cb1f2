//! A trunk of a simulated node. It keeps to what `phone` promises: no INVITE leaves without leave, and the leave is looked at directly
//! before each packet of it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use clarion::dispatch::trunk_line::TrunkLine;
use clarion::domain::claim::{LeaseEnd, NodeId};
use phone::call::{
    AnswerRecorded, CallEvent, CallRequest, ChoiceRecorded, KeyChoice, KeyMenu, LeaveRequest,
    MediaStats, PlacedCall,
};
use phone::ending::{Cause, Ending, Failure, Side};
use phone::leg_record::LegRecord;
use phone::media::stream::PlaybackItem;
use phone::signalling::{DialogSnapshot, Leave, SignallingError, Transport};
use phone::trunk::Health;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::life::Life;
use crate::network::{Pressed, Script, Then};
use crate::world::World;

type Events = mpsc::UnboundedSender<CallEvent>;

/// An INVITE without any response is sent again after this time.
const REPEAT: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub struct SimulatedLine {
    pub world: Arc<World>,
    pub node: NodeId,
    pub place: usize,
    pub life: Life,
    pub trunk: String,
    pub channels: u32,
}

#[async_trait]
impl TrunkLine for SimulatedLine {
    async fn call(
        &self,
        request: &CallRequest,
        events: &Events,
        hang_up: &CancellationToken,
    ) -> PlacedCall {
        let mut legs = Vec::new();
        let ending = match self.dial(request, events, hang_up, &mut legs).await {
            Ok(ending) => ending,
            Err(failure) => Ending::Failed(failure),
        };
        self.life.goes_on().await;
        PlacedCall { ending, legs }
    }

    async fn end_orphan(&self, dialog: &DialogSnapshot) -> Result<bool, SignallingError> {
        self.pause().await;
        self.record("end-orphan", &dialog.call_id);
        let mut state = self.world.state();
        let is_answered = dialog.via.is_none() || dialog.ringing.is_some();
        state.network.end_orphan(&dialog.call_id, is_answered);
        Ok(true)
    }

    fn health(&self) -> Health {
        if self.world.state().weather.is_trunk_down(&self.trunk) {
            return Health::Down {
                why: "simulated".to_owned(),
            };
        }
        Health::Up
    }

    fn stop(&self) {}
}

/// A leg that ends with whoever holds it, as those of `phone` do.
struct HeldLeg<'a> {
    line: &'a SimulatedLine,
    leg: usize,
    record: LegRecord,
}

impl Drop for HeldLeg<'_> {
    fn drop(&mut self) {
        if self.line.life.is_there() {
            self.line.world.state().network.hang_up(self.leg);
        }
    }
}

impl SimulatedLine {
    /// A moment in which the process may be killed, or stand still.
    async fn pause(&self) {
        let time = self.world.state().chance.millis(0..4);
        if !time.is_zero() {
            tokio::time::sleep(time).await;
        }
        self.life.goes_on().await;
    }

    fn record(&self, what: &str, about: &str) {
        let mut state = self.world.state();
        self.world.record(&mut state, self.place, what, about);
    }

    async fn dial(
        &self,
        request: &CallRequest,
        events: &Events,
        hang_up: &CancellationToken,
        legs: &mut Vec<LegRecord>,
    ) -> Result<Ending, Failure> {
        self.pause().await;
        if !self.health().usable() {
            return Err(Failure::plain(Cause::TransportDown));
        }
        let withheld = || Failure::plain(Cause::Withheld);
        let leave = self.ask_leave(request, events, hang_up).await;
        let leave = leave.ok_or_else(withheld)?;
        self.record("leave", &request.call_id);
        self.pause().await;
        if !leave.holds() {
            return Err(withheld());
        }
        let script = Script::draw(&mut self.world.state().chance);
        if script.is_lost {
            self.repeat(&leave, hang_up, legs).await?;
        }
        let leg = self.invite(request, script);
        let mut held = HeldLeg {
            line: self,
            leg,
            record: record(Instant::now()),
        };
        let ending = self.follow(&mut held, request, events, hang_up).await;
        held.record.ended_at = Instant::now().into_std();
        legs.push(held.record.clone());
        ending
    }

    /// `None` if there is no leave, or if the call was given up before.
    async fn ask_leave(
        &self,
        request: &CallRequest,
        events: &Events,
        hang_up: &CancellationToken,
    ) -> Option<Leave> {
        let (asked, leave) = LeaveRequest::new();
        let snapshot = Box::new(snapshot(request, false));
        events.send(CallEvent::Ready(snapshot, asked)).ok()?;
        hang_up.run_until_cancelled(leave).await?.ok()
    }

    /// The first INVITE has left and was lost. It is sent again where there still is leave.
    async fn repeat(
        &self,
        leave: &Leave,
        hang_up: &CancellationToken,
        legs: &mut Vec<LegRecord>,
    ) -> Result<(), Failure> {
        let leg = record(Instant::now());
        let given_up = hang_up
            .run_until_cancelled(tokio::time::sleep(REPEAT))
            .await;
        self.life.goes_on().await;
        let cause = match given_up {
            None => Cause::Cancelled,
            Some(()) if !leave.holds() => Cause::LeaveLost,
            Some(()) => return Ok(()),
        };
        legs.push(leg);
        Err(Failure::plain(cause))
    }

    /// The INVITE reaches the network: nothing may be wrong with it.
    fn invite(&self, request: &CallRequest, script: Script) -> usize {
        let sid = sid_of(&request.call_id);
        self.record("invite", &sid);
        let mut state = self.world.state();
        let state = &mut *state;
        let lease = state.model.lease_until(&self.node) - state.model.now;
        if state.model.lease_end == LeaseEnd::Time && lease <= 0 {
            let late = -lease;
            state
                .wrong
                .push(format!("{sid} was dialled {late} ms after the lease"));
        }
        let order = state.model.order_id(&sid);
        if state.network.was_dialled(&order) {
            state.wrong.push(format!("{order} was dialled again"));
        }
        let ids = (sid, order, request.call_id.clone());
        let leg = state.network.invite(ids, &self.node, &self.trunk, script);
        // What a node that is gone has left behind is hung up by others.
        let up = state.network.up_on(&self.trunk);
        let up = up.filter(|leg| state.model.is_held_by(&leg.sid, &leg.node));
        let up = up.count();
        if up > self.channels as usize {
            let (trunk, channels) = (&self.trunk, self.channels);
            state
                .wrong
                .push(format!("{up} legs on the {channels} channels of {trunk}"));
        }
        leg
    }

    /// From the INVITE to the end of the leg.
    async fn follow(
        &self,
        held: &mut HeldLeg<'_>,
        request: &CallRequest,
        events: &Events,
        hang_up: &CancellationToken,
    ) -> Result<Ending, Failure> {
        let leg = self.world.state().network.leg(held.leg).clone();
        let patience = Instant::now() + request.ring_time;
        let mut rang = false;
        if let Some(rings_at) = leg.rings_at().filter(|at| *at < patience) {
            rang = self.until(rings_at, hang_up).await;
            if rang {
                held.record.rang_at = Some(Instant::now().into_std());
                let _ = events.send(CallEvent::Ringing(Some(Box::new(snapshot(request, false)))));
            }
        }
        let is_patient = leg.final_at() <= patience;
        let in_time = self.until(leg.final_at().min(patience), hang_up).await;
        let failure = |cause, response: Option<u16>| Failure {
            response: response.map(|code| (code, "simulated".to_owned())),
            rang,
            ..Failure::plain(cause)
        };
        if !in_time || !is_patient {
            let cause = if in_time {
                Cause::NoAnswer
            } else {
                Cause::Cancelled
            };
            self.give_up(held.leg).await;
            return Err(failure(cause, None));
        }
        match leg.then() {
            Then::Answers(..) => Ok(self.talk(held, request, events, hang_up).await),
            Then::Refuses(_, code, cause) => Err(failure(cause, Some(code))),
            Then::Nothing => Err(failure(Cause::TimedOut, None)),
        }
    }

    /// Waits for what the network does. False if the call is given up before.
    async fn until(&self, moment: Instant, hang_up: &CancellationToken) -> bool {
        let happened = hang_up.run_until_cancelled(tokio::time::sleep_until(moment));
        let happened = happened.await.is_some();
        self.life.goes_on().await;
        happened
    }

    /// CANCEL. Somebody may answer before it arrives, and gets a BYE then.
    async fn give_up(&self, leg: usize) {
        self.pause().await;
        self.world.state().network.hang_up(leg);
        self.pause().await;
    }

    async fn talk(
        &self,
        held: &mut HeldLeg<'_>,
        request: &CallRequest,
        events: &Events,
        hang_up: &CancellationToken,
    ) -> Ending {
        let answered_at = Instant::now();
        held.record.answered_at = Some(answered_at.into_std());
        let (recorded, done) = AnswerRecorded::new();
        let dialog = Some(Box::new(snapshot(request, true)));
        let _ = events.send(CallEvent::Answered(dialog, recorded));
        let _ = done.await;
        self.life.goes_on().await;
        let is_there = self.world.state().network.acknowledge(held.leg);
        let wait = request
            .menu
            .as_ref()
            .map_or(Duration::ZERO, |menu| menu.wait);
        let plan = Instant::now() + length(&request.opening) + length(&request.plan) + wait;
        let over_at = self.world.state().network.leg(held.leg).over_at();
        let hung_up_by = if !is_there || over_at <= plan {
            Side::Them
        } else {
            Side::Us
        };
        let over_at = over_at.min(plan);
        if let Some(menu) = &request.menu
            && is_there
        {
            self.ask(held, menu, events, over_at, hang_up).await;
        }
        self.until(over_at, hang_up).await;
        self.world.state().network.hang_up(held.leg);
        Ending::Talked {
            time: answered_at.elapsed(),
            hung_up_by,
        }
    }
}

impl SimulatedLine {
    /// The callee may press a key that is asked for, and hears that it was understood once that is recorded.
    async fn ask(
        &self,
        held: &HeldLeg<'_>,
        menu: &KeyMenu,
        events: &Events,
        over_at: Instant,
        hang_up: &CancellationToken,
    ) {
        let presses = self.world.state().network.leg(held.leg).presses();
        let Some((after, pressed)) = presses else {
            return;
        };
        let choice = match pressed {
            Pressed::Confirm => menu.confirm.first().copied().map(KeyChoice::Confirmed),
            Pressed::Stop => menu.stop.map(|_| KeyChoice::Stopped),
        };
        let pressed_at = Instant::now() + after;
        let (Some(choice), true) = (choice, pressed_at < over_at) else {
            return;
        };
        if !self.until(pressed_at, hang_up).await {
            return;
        }
        self.world.state().network.press(held.leg, pressed);
        let (recorded, done) = ChoiceRecorded::new();
        let _ = events.send(CallEvent::Chosen(choice, recorded));
        let waiting = tokio::time::timeout_at(over_at, done);
        let waiting = hang_up.run_until_cancelled(waiting).await;
        self.life.goes_on().await;
        if let Some(Ok(Ok(()))) = waiting {
            self.world.state().network.thank(held.leg);
        }
    }
}

/// The callSid within a Call-ID.
fn sid_of(call_id: &str) -> String {
    let sid = call_id.split('-').next();
    sid.expect("there always is a first piece").to_owned()
}

fn length(plan: &[PlaybackItem]) -> Duration {
    let frames = plan.iter().map(|item| match item {
        PlaybackItem::Silence { frames } => *frames,
        PlaybackItem::Sound(_) | PlaybackItem::Keys(_) => 0,
    });
    Duration::from_millis(20) * frames.sum()
}

fn snapshot(request: &CallRequest, is_answered: bool) -> DialogSnapshot {
    DialogSnapshot {
        target: request.number.clone(),
        from: String::new(),
        to: String::new(),
        call_id: request.call_id.clone(),
        cseq: 1,
        routes: Vec::new(),
        via: (!is_answered).then(|| "SIP/2.0/UDP".to_owned()),
        sent_to: None,
        ringing: None,
        repeats: 0,
    }
}

fn record(now: Instant) -> LegRecord {
    LegRecord {
        address: ([192, 0, 2, 1], 5060).into(),
        transport: Transport::Udp,
        sent_at: now.into_std(),
        rang_at: None,
        answered_at: None,
        ended_at: now.into_std(),
        code: None,
        cause: None,
        phrase: None,
        hung_up_by: None,
        why_hung_up: None,
        keys: Vec::new(),
        heard: None,
        media: MediaStats::default(),
    }
}
