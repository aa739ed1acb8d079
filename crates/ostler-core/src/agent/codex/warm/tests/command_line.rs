//! The command line, and what is told apart from it.

use super::*;
use crate::{
    agent::{
        CommandLine, Order, Stdin, WarmLaunch,
        codex::{SPEC, warm::WARM},
        testing::{argv, warm_launch_of},
    },
    request::{ProjectSettings, Thinking},
};

fn line(options: &Options, variables: &[(&str, &str)]) -> CommandLine {
    let variables: Vec<_> =
        variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
    let launch = WarmLaunch { variables: &variables, ..warm_launch_of(&SPEC, options, &Open::New) };
    (WARM.launch)(&launch).unwrap()
}

#[test]
fn what_differs_between_sessions_is_not_in_the_line() {
    let mut other = options();
    other.cwd = "/elsewhere".into();
    other.model = Some("gpt-6-astra".into());
    other.system_prompt = Some("Be brief.".into());
    other.permissions = Permissions::Bypass;
    other.thinking = Some(Thinking::High);
    other.project_settings = ProjectSettings::Trusted;
    let (one, two) = (line(&options(), &[]), line(&other, &[]));
    assert_eq!(argv(&one), argv(&two));
    assert_eq!(one.env, two.env);
    assert!(matches!(one.stdin, Stdin::Open));
    assert_eq!(
        argv(&one),
        [
            "app-server",
            "-c",
            "features.unbounded_connection_retries=false",
            "-c",
            "shell_environment_policy.ignore_default_excludes=false",
            "-c",
            "analytics.enabled=false",
            "-c",
            "check_for_update_on_startup=false",
            "-c",
            "thread_unload_delay_secs=0",
        ]
    );
}

#[test]
fn the_operators_settings_and_a_home_are_those_of_one_shot() {
    let mut options = options();
    options.home = Some("/homes/codex".into());
    options.extra_args = ["-c", "model_provider=sim", "-c", "model_providers.sim={name=\"sim\"}"]
        .map(str::to_owned)
        .to_vec();
    let line = line(&options, &[]);
    let args = argv(&line).join(" ");
    assert!(args.contains("features.plugins=false"), "{args}");
    let bounds = "model_providers.sim={name=\"sim\"} \
                  -c model_providers.sim.request_max_retries=2 \
                  -c model_providers.sim.stream_max_retries=2";
    assert!(args.ends_with(bounds), "{args}");
    assert!(line.env.contains(&("CODEX_HOME".into(), "/homes/codex".into())));
}

#[test]
fn a_key_that_only_exec_reads_is_told_and_kept_in_memory() {
    let variables = [("CODEX_API_KEY", "sk-secret")];
    let line = line(&options(), &variables);
    let args = argv(&line).join(" ");
    assert!(args.contains("-c cli_auth_credentials_store=\"ephemeral\""), "{args}");
    assert!(!args.contains("sk-secret"));

    let mut talk = Talk::with_variables(&variables);
    talk.order(Order::Start);
    let then = talk.answer_ok("initialize", json!({}));
    assert!(!then.iter().any(|action| matches!(action, Action::Ready)), "not logged in yet");
    assert_eq!(
        talk.last_request("account/login/start")["params"],
        json!({ "type": "apiKey", "apiKey": "sk-secret" })
    );
    let then = talk.answer_ok("account/login/start", json!({ "type": "apiKey" }));
    assert!(matches!(then[..], [Action::Ready]), "{then:?}");
}

#[test]
fn without_a_key_the_users_own_login_counts() {
    let line = line(&options(), &[("CODEX_API_KEY", ""), ("OPENAI_API_KEY", "sk-other")]);
    assert!(!argv(&line).join(" ").contains("cli_auth_credentials_store"));
    let mut talk = Talk::new();
    let asked = talk.order(Order::Start);
    let asked = &written(&asked)[0];
    assert_eq!(asked["params"]["capabilities"]["experimentalApi"], true, "cleaning needs it");
    let then = talk.answer_ok("initialize", json!({ "userAgent": "ostler/1" }));
    assert_eq!(methods(&then), ["initialized"]);
    assert!(matches!(then.last(), Some(Action::Ready)));
}

#[test]
fn a_refused_key_fails_every_session_and_not_the_start() {
    let mut talk = Talk::with_variables(&[("CODEX_API_KEY", "sk")]);
    talk.order(Order::Start);
    talk.answer_ok("initialize", json!({}));
    let then = talk.refuse("account/login/start", "API key login is disabled");
    assert!(matches!(then[..], [Action::Ready]), "{then:?}");
    let (open, options) = (Open::New, options());
    let session = crate::agent::ONLY_SESSION;
    let then = talk.order(Order::Open { session, open: &open, options: &options });
    let [Action::OpenFailed { failure, .. }, Action::Stop] = &then[..] else { panic!("{then:?}") };
    assert_eq!(failure.kind.code(), "auth");
}

#[test]
fn what_the_cli_cannot_do_is_said() {
    let mut options = asking();
    options.allowed_tools = Some(vec!["Read".into()]);
    options.max_turns = Some(3);
    let warnings = line(&options, &[]).warnings;
    assert_eq!(warnings.len(), 2, "somebody can be asked here: {warnings:?}");
    assert!(SPEC.caps.supports_warm && SPEC.caps.supports_approvals);
}
