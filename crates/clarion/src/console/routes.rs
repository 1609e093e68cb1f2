//! Every route of the console on one screen: its method, its path, who may ask for it, and who answers.

use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::response::Response;
use axum::routing::{MethodFilter, on};
use tower_http::catch_panic::CatchPanicLayer;

use super::accounts::{account, application, do_not_call, lists, rates};
use super::guard;
use super::headers;
use super::refusal::Refused;
use super::refusal_page::refuse;
use super::route_access::RouteAccess;
use super::visit::Visit;
use super::{
    Console, accounts, assets, audio, audit, bills, call, callbacks, calls, dialling, export,
    health, intakes, now, preferences, settings, sign_in, trunks, try_it,
};
use crate::domain::operator::OperatorRole;

type Answer = Pin<Box<dyn Future<Output = Result<Response, Refused>> + Send>>;
type Handler = Arc<dyn Fn(Arc<Console>, Arc<Visit>) -> Answer + Send + Sync>;

/// One route. What it needs is checked before its handler is asked.
#[expect(missing_debug_implementations, reason = "a handler has none")]
pub struct ConsoleRoute {
    pub method: Method,
    pub path: &'static str,
    pub access: RouteAccess,
    handler: Handler,
}

const ANYBODY: RouteAccess = RouteAccess::Anybody;
const VIEWER: RouteAccess = RouteAccess::Role(OperatorRole::Viewer);
const ADMIN: RouteAccess = RouteAccess::Role(OperatorRole::Admin);

/// All of them.
pub fn routes() -> Vec<ConsoleRoute> {
    vec![
        get("/assets/{name}", ANYBODY, |_, visit| {
            ready(assets::download(&visit))
        }),
        get("/language/{code}", ANYBODY, |_, visit| {
            ready(preferences::choose_language(&visit))
        }),
        get("/sign-in", ANYBODY, sign_in::show),
        post("/sign-in", ANYBODY, sign_in::create),
        post("/sign-out", VIEWER, sign_in::end),
        get("/", VIEWER, now::show),
        get("/events/now", VIEWER, |console, visit| {
            ready(now::watch(console, visit))
        }),
        get("/calls", VIEWER, calls::list),
        get("/calls.csv", VIEWER, export::download),
        get("/calls/{sid}", VIEWER, call::show),
        get("/events/calls/{sid}", VIEWER, call::watch),
        post("/calls/{sid}/cancel", ADMIN, call::cancel),
        post("/calls/{sid}/callback", ADMIN, call::resend_callback),
        get("/accounts", VIEWER, accounts::list),
        post("/accounts", ADMIN, accounts::create),
        get("/accounts/{sid}", VIEWER, account::show),
        post("/accounts/{sid}", ADMIN, account::set),
        post("/accounts/{sid}/suspend", ADMIN, account::suspend),
        post("/accounts/{sid}/resume", ADMIN, account::resume),
        post("/accounts/{sid}/token", ADMIN, account::rotate_token),
        post("/accounts/{sid}/apps", ADMIN, application::create),
        post("/accounts/{sid}/rates", ADMIN, rates::set),
        post("/accounts/{sid}/rates/remove", ADMIN, rates::remove),
        get("/accounts/{sid}/lists", VIEWER, lists::show),
        post("/accounts/{sid}/lists", ADMIN, lists::add),
        post("/accounts/{sid}/lists/set", ADMIN, lists::set),
        post("/accounts/{sid}/lists/remove", ADMIN, lists::remove),
        get("/accounts/{sid}/do-not-call", VIEWER, do_not_call::show),
        post("/accounts/{sid}/do-not-call", ADMIN, do_not_call::add),
        post(
            "/accounts/{sid}/do-not-call/remove",
            ADMIN,
            do_not_call::remove,
        ),
        post(
            "/accounts/{sid}/do-not-call/import",
            ADMIN,
            do_not_call::import,
        ),
        get(
            "/accounts/{sid}/do-not-call.txt",
            VIEWER,
            do_not_call::download,
        ),
        get("/apps/{id}", VIEWER, application::show),
        post("/apps/{id}", ADMIN, application::set),
        post("/apps/{id}/secret", ADMIN, application::rotate_secret),
        post("/calls/{sid}/again", ADMIN, call::again),
        get("/intakes", VIEWER, intakes::list),
        post("/intakes", ADMIN, intakes::create),
        get("/intakes/{intake}", VIEWER, intakes::show),
        post("/intakes/{intake}", ADMIN, intakes::set),
        post("/intakes/{intake}/token", ADMIN, intakes::rotate_token),
        post("/intakes/{intake}/remove", ADMIN, intakes::remove),
        post("/intakes/{intake}/test", ADMIN, intakes::test),
        get("/callbacks", VIEWER, callbacks::list),
        post("/callbacks/resend", ADMIN, callbacks::resend),
        post("/callbacks/resend-all", ADMIN, callbacks::resend_all),
        get("/calls/{sid}/sound.wav", VIEWER, audio::of_call),
        get("/calls/{sid}/wave.svg", VIEWER, audio::wave_of_call),
        get("/audio", VIEWER, audio::list),
        post("/audio", ADMIN, audio::upload),
        post("/audio/remove", ADMIN, audio::remove),
        get("/audio/sound.wav", VIEWER, audio::of_file),
        get("/audio/wave.svg", VIEWER, audio::wave_of_file),
        get("/dialling", VIEWER, dialling::show),
        post("/dialling/stop", ADMIN, dialling::stop),
        post("/dialling/resume", ADMIN, dialling::resume),
        post("/dialling/bar", ADMIN, dialling::bar),
        post("/dialling/unbar", ADMIN, dialling::unbar),
        get("/trunks", VIEWER, trunks::show),
        post("/trunks/{name}/drain", ADMIN, trunks::drain),
        post("/trunks/{name}/open", ADMIN, trunks::open),
        post("/trunks/test", ADMIN, trunks::test),
        get("/bills", VIEWER, bills::list),
        get("/bills/{day}", VIEWER, bills::show),
        post("/bills/{day}/verify", VIEWER, bills::verify),
        get("/bills/{day}/{app}", VIEWER, bills::download),
        get("/try", VIEWER, try_it::show),
        post("/try", ADMIN, try_it::create),
        // It changes nothing.
        post("/try/show", VIEWER, try_it::preview),
        get("/health", VIEWER, health::show),
        get("/events/health", VIEWER, |console, visit| {
            ready(health::watch(console, visit))
        }),
        get("/settings", VIEWER, |console, visit| {
            ready(Ok(settings::show(&console, &visit)))
        }),
        get("/audit", VIEWER, audit::list),
    ]
}

fn get<F, R>(path: &'static str, access: RouteAccess, handler: F) -> ConsoleRoute
where
    F: Fn(Arc<Console>, Arc<Visit>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Response, Refused>> + Send + 'static,
{
    route(Method::GET, path, access, handler)
}

fn post<F, R>(path: &'static str, access: RouteAccess, handler: F) -> ConsoleRoute
where
    F: Fn(Arc<Console>, Arc<Visit>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Response, Refused>> + Send + 'static,
{
    route(Method::POST, path, access, handler)
}

fn route<F, R>(method: Method, path: &'static str, access: RouteAccess, handler: F) -> ConsoleRoute
where
    F: Fn(Arc<Console>, Arc<Visit>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Response, Refused>> + Send + 'static,
{
    ConsoleRoute {
        method,
        path,
        access,
        handler: Arc::new(move |console, visit| Box::pin(handler(console, visit))),
    }
}

pub fn router(console: Arc<Console>) -> Router {
    let mut router = Router::new();
    for route in routes() {
        let filter = MethodFilter::try_from(route.method).expect("a usual method");
        let (access, handler) = (route.access, route.handler);
        let answer = move |State(console): State<Arc<Console>>, request: Request| {
            answer(console, access, Arc::clone(&handler), request)
        };
        router = router.route(route.path, on(filter, answer));
    }
    let nothing = |State(console): State<Arc<Console>>, request: Request| {
        // Strangers are told nothing about which addresses there are.
        let missing: Handler = Arc::new(|_, _| Box::pin(ready(Err(Refused::NotFound))));
        answer(console, VIEWER, missing, request)
    };
    router
        .fallback(nothing)
        // No panic is known to be reachable from outside. If one happens, its request is answered and nothing else ends.
        .layer(CatchPanicLayer::new())
        .layer(axum::middleware::map_response(|answer| {
            ready(headers::protect(answer))
        }))
        .with_state(console)
}

async fn answer(
    console: Arc<Console>,
    access: RouteAccess,
    handler: Handler,
    request: Request,
) -> Response {
    let visit = match guard::admit(&console, access, request).await {
        Ok(visit) => Arc::new(visit),
        Err(refused) => return refused,
    };
    match handler(Arc::clone(&console), Arc::clone(&visit)).await {
        Ok(response) => response,
        Err(refused) => refuse(&console, &visit, &refused),
    }
}
