//! An agent for tests that is kept between turns: a shell script, and the
//! dialect that speaks with it.

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use ostler_core::{
    agent::{
        Action, AgentName, AgentSpec, Caps, CommandLine, Dialect, Heard, Input, Launch,
        LaunchError, Names, Order, SessionKey, Signal, Stdin, StopStep, TurnEnd, TurnKey,
        WarmLaunch, WarmSpec,
    },
    event::{EventBody, Status, Stream},
    failure::{Failure, FailureKind},
    permission::{Permission, PermissionKind, Ruling},
    request::{Open, check_session},
};

const SCRIPT: &str = include_str!("parrot.sh");

const STOP: &[StopStep] = &[
    StopStep::CloseStdin { wait: Duration::from_secs(2) },
    StopStep::Signal { signal: Signal::Term, wait: Duration::from_millis(200) },
];

static LONELY: WarmSpec = WarmSpec {
    sessions_per_process: 1,
    supports_steering: true,
    is_bound_to_directory: true,
    adopts: |memo| memo.file.is_some(),
    stop: STOP,
    launch,
    dialect,
    attach: None,
};

static SOCIABLE: WarmSpec = WarmSpec {
    sessions_per_process: 8,
    supports_steering: false,
    is_bound_to_directory: false,
    adopts: |_| true,
    stop: STOP,
    launch,
    dialect,
    attach: None,
};

/// One session a process.
pub(crate) static PARROT: AgentSpec = spec("parrot", Some(&LONELY));
/// Eight sessions a process.
pub(crate) static FLOCK: AgentSpec = spec("flock", Some(&SOCIABLE));
/// A process a turn.
pub(crate) static SWALLOW: AgentSpec = spec("swallow", None);
/// The same under another name.
pub(crate) static TWIN: AgentSpec = spec("twin", Some(&SOCIABLE));

const fn spec(name: &'static str, warm: Option<&'static WarmSpec>) -> AgentSpec {
    AgentSpec {
        name: AgentName::built_in(name),
        title: Cow::Borrowed("Parrot"),
        program: Cow::Borrowed("sh"),
        custom: None,
        natives: &[],
        caps: Caps {
            supports_session_continuation: true,
            supports_model_selection: false,
            supports_tool_control: false,
            supports_streaming: true,
            supports_approvals: true,
            supports_warm: warm.is_some(),
            supports_max_turns: false,
            supports_system_prompt: false,
            supported_models: &[],
            default_model: None,
            max_prompt_length: 0,
        },
        env: Names::Listed(&[]),
        home_env: &[],
        project_files: &[],
        stop: STOP,
        tested_versions: &[],
        install_hint: "",
        identity: "",
        system_prompt: Heard::EachTurn,
        check_session,
        launch: once,
        dialect: |_| Box::new(Parrot::default()),
        warm,
    }
}

/// A turn with a process of its own: says its prompt and ends.
fn once(launch: &Launch<'_>) -> Result<CommandLine, LaunchError> {
    let script = format!("echo 'opened 0 once'; echo 'end 0 {}'", launch.prompt);
    Ok(CommandLine { args: vec!["-c".into(), script.into()], ..CommandLine::default() })
}

fn launch(launch: &WarmLaunch<'_>) -> Result<CommandLine, LaunchError> {
    // `sh -c SCRIPT name id`: a process is started for a session, but any may
    // share it whose other options are the same.
    let id = launch.open.memo().map_or(launch.new_id, |memo| memo.id.as_str());
    let id = launch.options.model.as_deref().unwrap_or(id);
    let mut args = vec!["-c".into(), SCRIPT.into(), "parrot".into(), id.into()];
    args.extend(launch.options.extra_args.iter().map(Into::into));
    Ok(CommandLine { args, stdin: Stdin::Open, ..CommandLine::default() })
}

fn dialect(_: &WarmLaunch<'_>) -> Box<dyn Dialect> {
    Box::new(Parrot::default())
}

/// A session that is refused without asking the process.
pub(crate) const REFUSED: &str = "refused";

#[derive(Default)]
struct Parrot {
    turns: BTreeMap<u32, SessionKey>,
    n_unasked: u32,
    ended: Vec<u32>,
}

impl Parrot {
    fn line(&mut self, line: &str, out: &mut Vec<Action>) {
        let mut words = line.splitn(4, ' ');
        let mut word = || words.next().unwrap_or_default();
        let (verb, first) = (word(), word());
        let key = first.parse().unwrap_or(u32::MAX);
        let turn = TurnKey(key);
        let rest = |from: usize| line.splitn(from + 1, ' ').nth(from).unwrap_or_default();
        match verb {
            "ready" => out.push(Action::Ready),
            "opened" => {
                let id = rest(2).to_owned();
                out.push(Action::Opened { session: SessionKey(key), id });
            }
            "lost" => {
                let failure = Failure::new(FailureKind::SessionLost, "never heard of it");
                out.push(Action::OpenFailed { session: SessionKey(key), failure });
            }
            "text" => say(turn, rest(2), out),
            "working" => out.push(Action::Working { turn }),
            "steered" => {
                let text = rest(2).to_owned();
                let event = EventBody::Status(Status::Steered { text });
                out.push(Action::Emit { turn, parent: None, event });
            }
            "ask" => out.push(Action::Ask {
                turn,
                permission: {
                    let (title, input) = (rest(3).to_owned(), Some(rest(3).into()));
                    let asked = Permission::new(PermissionKind::Command, "shell", title, input);
                    Box::new(asked.named(word()))
                },
            }),
            "withdraw" => out.push(Action::Withdraw { turn, request: word().to_owned() }),
            "end" => self.end(turn, rest(2), out),
            "unasked" => {
                self.n_unasked += 1;
                let turn = TurnKey::unasked(self.n_unasked);
                self.turns.insert(turn.0, SessionKey(key));
                out.push(Action::Unasked { session: SessionKey(key), turn });
            }
            "utext" => {
                let turn = TurnKey::unasked(self.n_unasked);
                say(turn, rest(1), out);
                self.end(turn, rest(1), out);
            }
            _ => {
                let first = self.turns.keys().next().copied();
                if let (Some(turn), false) = (first, line.is_empty()) {
                    let event =
                        EventBody::Unknown { stream: Stream::Stdout, text: line.to_owned() };
                    out.push(Action::Emit { turn: TurnKey(turn), parent: None, event });
                }
            }
        }
    }

    fn end(&mut self, turn: TurnKey, text: &str, out: &mut Vec<Action>) {
        self.turns.remove(&turn.0);
        self.ended.push(turn.0);
        let end = TurnEnd { text: Some(text.to_owned()), ..TurnEnd::default() };
        out.push(Action::EndTurn { turn, end: Box::new(end) });
    }
}

impl Dialect for Parrot {
    fn step(&mut self, _: Timestamp, input: Input<'_>, out: &mut Vec<Action>) {
        let write = |text: String| Action::Write(format!("{text}\n").into_bytes());
        match input {
            Input::Line { from: Stream::Stdout, bytes, .. } => {
                self.line(&String::from_utf8_lossy(bytes), out);
            }
            Input::Line { .. } | Input::Timer(_) | Input::Heard(_) => {}
            Input::Cancel { turn } => out.push(write(format!("cancel {}", turn.0))),
            Input::Exited(_) => {
                for turn in std::mem::take(&mut self.turns).into_keys() {
                    let failure = Some(Failure::new(FailureKind::Crashed, "it fell off"));
                    let end = Box::new(TurnEnd { failure, ..TurnEnd::default() });
                    out.push(Action::EndTurn { turn: TurnKey(turn), end });
                }
            }
            Input::Order(Order::Start | Order::Leave) => {}
            Input::Order(Order::Open { session, open, .. }) => {
                let id = match open {
                    Open::New => "",
                    Open::Resume(memo) if memo.id == REFUSED => {
                        let failure = Failure::new(FailureKind::SessionLost, "no such name");
                        return out.push(Action::OpenFailed { session, failure });
                    }
                    Open::Resume(memo) => &memo.id,
                };
                out.push(write(format!("open {} {id}", session.0)));
            }
            Input::Order(Order::Prompt { session, turn, prompt, .. }) => {
                self.turns.insert(turn.0, session);
                out.push(write(format!("prompt {} {} {prompt}", session.0, turn.0)));
            }
            Input::Order(Order::Steer { turn, text }) => {
                out.push(write(format!("steer {} {text}", turn.0)));
            }
            Input::Order(Order::Answer { turn, request, ruling }) => {
                let word = match ruling {
                    Ruling::Allow { .. } => "yes".to_owned(),
                    Ruling::Deny { why } => format!("no {why}"),
                };
                out.push(write(format!("answer {} {request} {word}", turn.0)));
            }
            Input::Order(Order::Close { session }) => {
                out.push(write(format!("close {}", session.0)));
            }
        }
    }
}

fn say(turn: TurnKey, text: &str, out: &mut Vec<Action>) {
    let event = EventBody::Output { text: text.to_owned(), block: "b".into() };
    out.push(Action::Emit { turn, parent: None, event });
}
