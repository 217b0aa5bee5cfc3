//! Plays a script.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use hyper::StatusCode;
use rehearsal_core::ModelClient;
use rehearsal_llm::chat::{ChatRequest, ChatResponse, ToolDefinition, ToolResult};
use rehearsal_llm::wire::Dialect;

use crate::answering::{answer, error, refusal, response};
use crate::client::{Clients, Lanes, Request, is_side};
use crate::clip::{end_of, start_of};
use crate::ids::Seeded;
use crate::lint::lint;
use crate::matching::{asked, choose, explain_miss};
use crate::play::{Answer, Asked, Play};
use crate::record::{Answered, Exchange, Report, TurnReport};
use crate::route::{Endpoint, Framing, Named, route};
use crate::script::{Fault, LintPolicy, Pace, Script, Times, Turn};
use crate::{fixed, side};

/// Answers from a script, and remembers what was asked.
#[derive(Debug)]
pub struct ScriptedPlay {
    script: Arc<Script>,
    clients: Clients,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// How often each turn was played.
    played: Vec<u64>,
    captured: BTreeMap<String, String>,
    lanes: Lanes,
    /// How many requests each lane had.
    asked: HashMap<String, u64>,
    report: Report,
}

/// What was decided for a request.
enum Decision {
    /// With what it says, if it says anything before it goes wrong.
    Turn {
        index: usize,
        response: Option<ChatResponse>,
    },
    Side,
    Miss {
        message: String,
    },
}

impl ScriptedPlay {
    /// From its beginning. `clients` are the agent CLIs whose requests are recognized.
    pub fn new(script: impl Into<Arc<Script>>, clients: &[&'static ModelClient]) -> Self {
        let script = script.into();
        let state = State { played: vec![0; script.turns.len()], ..State::default() };
        Self { script, clients: Clients::new(clients), state: Mutex::new(state) }
    }

    /// What happened so far.
    pub fn report(&self) -> Report {
        let state = self.state();
        let turns = self.script.turns.iter().zip(&state.played).enumerate();
        let turns = turns.map(|(index, (turn, played))| TurnReport {
            turn: index + 1,
            name: turn.name.clone(),
            line: turn.place.map(|place| place.line),
            times: match turn.times {
                Times::Exactly(times) => Some(times),
                Times::Any => None,
            },
            played: *played,
        });
        Report { turns: turns.collect(), ..state.report.clone() }
    }

    /// A play that panicked has not harmed the numbers.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn chat(&self, asked: &Asked, dialect: Dialect, named: Option<Named>) -> Answer {
        let request = match self.understand(asked, dialect, named) {
            Ok(request) => request,
            Err(message) => {
                self.note(asked, Answered::Miss { message: message.clone() });
                return refusal(dialect, &message);
            }
        };
        let findings = lint(dialect, &request.chat);
        let (decision, seeded) = self.decide(asked, &request, findings);
        match decision {
            Decision::Turn { index, response } => {
                let fault = self.script.turns.get(index).and_then(|turn| turn.fault.clone());
                match response {
                    Some(response) => answer(&request, &response, self.script.pace, fault, seeded),
                    None => wrong(dialect, fault).await,
                }
            }
            Decision::Side => {
                let mut ids = seeded.clone();
                answer(&request, &side::answer(&request.chat, &mut ids), Pace::Instant, None, seeded)
            }
            Decision::Miss { message } => refusal(dialect, &message),
        }
    }

    fn understand(&self, asked: &Asked, dialect: Dialect, named: Option<Named>) -> Result<Request, String> {
        let received = dialect.read_request(&asked.body).map_err(|error| error.to_string())?;
        let mut chat = received.chat;
        let mut framing = received.stream.then_some(Framing::Events);
        if let Some(named) = named {
            chat.model = named.model;
            framing = named.stream;
        }
        let client = self.clients.of(asked);
        let lane = self.state().lanes.name(asked, client, is_side(client, &chat));
        Ok(Request { dialect, chat, framing, lane, clients: self.clients.clone() })
    }

    /// Chooses and writes it down, in one step: requests come side by side.
    fn decide(&self, asked: &Asked, request: &Request, findings: Vec<String>) -> (Decision, Seeded) {
        let mut state = self.state();
        let count = state.asked.entry(request.lane.clone()).or_default();
        let seeded = Seeded::new(self.script.seed, &request.lane, *count);
        *count += 1;
        let decision = self.choose(&mut state, request, &findings, &seeded);
        let answered = match &decision {
            Decision::Turn { index, .. } => Answered::Turn { turn: index + 1 },
            Decision::Side => Answered::Side,
            Decision::Miss { message } => Answered::Miss { message: message.clone() },
        };
        state.report.add(Exchange { findings, ..exchange(asked, Some(request), answered) });
        (decision, seeded)
    }

    fn choose(&self, state: &mut State, request: &Request, findings: &[String], seeded: &Seeded) -> Decision {
        if self.script.lint == LintPolicy::Refuse && !findings.is_empty() {
            return Decision::Miss { message: findings.join("; ") };
        }
        let Some(index) = choose(&self.script, &state.played, request) else {
            if request.lane == "side" {
                return Decision::Side;
            }
            return Decision::Miss { message: explain_miss(&self.script, &state.played, request) };
        };
        let Some(turn) = self.script.turns.get(index) else { return Decision::Side };
        if let Some(reason) = turn.expect.misfit(request) {
            let message =
                format!("{} expects otherwise: {reason}. Asked: {}", turn.title(index), asked(request));
            return Decision::Miss { message };
        }
        if let Err(message) = capture(turn, index, request, &mut state.captured) {
            return Decision::Miss { message };
        }
        let silent = matches!(turn.fault, Some(Fault::Hang | Fault::Status { .. }));
        let mut ids = seeded.clone();
        let said = (!silent).then(|| response(turn, request, &self.script.vars, &state.captured, &mut ids));
        match said.transpose() {
            Err(message) => Decision::Miss { message: format!("{}: {message}", turn.title(index)) },
            Ok(response) => {
                state.played[index] += 1;
                Decision::Turn { index, response }
            }
        }
    }

    fn note(&self, asked: &Asked, answered: Answered) {
        self.state().report.add(exchange(asked, None, answered));
    }
}

/// The answer to a request that goes wrong before anything is said.
async fn wrong(dialect: Dialect, fault: Option<Fault>) -> Answer {
    let Some(Fault::Status { code, retry_after, retry, message }) = fault else {
        return std::future::pending().await;
    };
    let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut answer = error(dialect, status, message.as_deref().unwrap_or("this error is in the script"));
    if let Some(time) = retry_after {
        answer = answer.with("retry-after", &time.as_secs().to_string());
    }
    if let Some(retry) = retry {
        answer = answer.with("x-should-retry", &retry.to_string());
    }
    answer
}

fn exchange(asked: &Asked, request: Option<&Request>, answered: Answered) -> Exchange {
    let path = start_of(asked.path.split('?').next().unwrap_or_default());
    let chat = request.map(|request| &request.chat);
    Exchange {
        path,
        lane: request.map(|request| request.lane.clone()).unwrap_or_default(),
        model: chat.map(|chat| start_of(&chat.model)).unwrap_or_default(),
        messages: chat.map_or(0, |chat| chat.messages.len()),
        tools: chat.map(|chat| names(&chat.tools)).unwrap_or_default(),
        said: chat.map(|chat| end_of(&chat.last_user_text())).unwrap_or_default(),
        returned: chat.map(returned).unwrap_or_default(),
        answered,
        findings: Vec::new(),
    }
}

fn returned(chat: &ChatRequest) -> String {
    let results: Vec<String> = chat.last_results().map(ToolResult::text).collect();
    end_of(&results.join(" "))
}

/// More than any agent offers.
const MOST_TOOLS: usize = 200;

fn names(tools: &[ToolDefinition]) -> Vec<String> {
    tools.iter().take(MOST_TOOLS).map(|tool| start_of(&tool.name)).collect()
}

/// What the turn wants to know of the request.
fn capture(
    turn: &Turn,
    index: usize,
    request: &Request,
    captured: &mut BTreeMap<String, String>,
) -> Result<(), String> {
    for (name, expression) in &turn.captures {
        let found = request.texts().find_map(|text| {
            let groups = expression.captures(text)?;
            groups.get(1).or_else(|| groups.get(0)).map(|group| group.as_str().to_owned())
        });
        let Some(found) = found else {
            return Err(format!(
                "{} captures `{name}`, but nothing matches `{expression}`. Asked: {}",
                turn.title(index),
                asked(request)
            ));
        };
        captured.insert(name.clone(), found);
    }
    Ok(())
}

#[async_trait]
impl Play for ScriptedPlay {
    async fn answer(&self, asked: Asked) -> Answer {
        let is_anthropic = asked.headers.contains_key("anthropic-version");
        match route(&asked.method, &asked.path, is_anthropic) {
            Endpoint::Chat { dialect, named } => self.chat(&asked, dialect, named).await,
            endpoint => {
                let is_known = endpoint != Endpoint::Unknown;
                self.note(&asked, if is_known { Answered::Fixed } else { Answered::UnknownPath });
                fixed::answer(&endpoint, &asked, &self.script.models)
            }
        }
    }
}
