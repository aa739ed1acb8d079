//! What is found at a stand-in for Twilio and for whoever answers at the public URL.

use axum::{
    Router,
    http::{Method, StatusCode, Uri},
    response::IntoResponse as _,
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinSet};

use super::*;

const ACCOUNT: &str = "AC00000000000000000000000000000001";
const NUMBER: &str = "+15017122661";

/// Answers each call by the first of these whose text is in its method and path.
struct Server {
    url: String,
    _tasks: JoinSet<()>,
}

type Answer = (&'static str, u16, String);

impl Server {
    async fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(move |method: Method, uri: Uri| {
            let asked = format!("{method} {uri}");
            let found = answers.iter().find(|(part, ..)| asked.contains(part)).cloned();
            let (_, status, body) = found.unwrap_or(("", 404, json!({"code": 20404}).to_string()));
            async move { (StatusCode::from_u16(status).unwrap(), body).into_response() }
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, _tasks: tasks }
    }
}

fn answer(part: &'static str, status: u16, body: &Value) -> Answer {
    (part, status, body.to_string())
}

fn account(status: &str) -> Answer {
    answer("1.json", 200, &json!({"friendly_name": "Stable", "status": status}))
}

fn refused(part: &'static str) -> Answer {
    answer(part, 401, &json!({"code": 20003, "message": "Authenticate"}))
}

fn no_messages() -> Answer {
    answer("Messages.json?PageSize=1", 200, &json!({"messages": [], "next_page_uri": null}))
}

/// What a gateway says to those who are not Twilio.
fn gateway() -> Answer {
    ("POST /twilio/messages", 403, FORGED.to_owned())
}

/// What it says of a link that there is not.
fn no_file() -> Answer {
    answer("GET /media/x", 404, &json!({"error": {"code": "NOT_FOUND", "message": NO_FILE}}))
}

fn secret(text: &str) -> Secret {
    Secret::new(text.to_owned())
}

fn by_token() -> (Login, Option<Secret>) {
    let (account, user) = (ACCOUNT.to_owned(), ACCOUNT.to_owned());
    (Login { account, user, password: secret("very-secret") }, Some(secret("very-secret")))
}

fn by_key(token: Option<&str>) -> (Login, Option<Secret>) {
    let user = "SK00000000000000000000000000000001".to_owned();
    let login = Login { account: ACCOUNT.to_owned(), user, password: secret("very-secret") };
    (login, token.map(secret))
}

async fn look(
    answers: Vec<Answer>,
    (login, token): (Login, Option<Secret>),
    change: impl FnOnce(&str, &mut Twilio),
) -> Vec<Finding> {
    let server = Server::start(answers).await;
    let mut twilio = Twilio { api_url: Some(server.url.clone()), ..Twilio::default() };
    change(&server.url, &mut twilio);
    let findings = check(&twilio, login, token).await;
    assert!(!format!("{findings:?}").contains("very-secret"));
    findings
}

/// Returns what is wrong.
fn errors(findings: &[Finding]) -> Vec<&str> {
    findings.iter().filter(|it| !it.is_ok).map(|it| it.text.as_str()).collect()
}

#[tokio::test]
async fn an_account_that_works_is_found_to() {
    let sandbox = |_: &str, twilio: &mut Twilio| twilio.whatsapp_from = Some(SANDBOX.to_owned());
    let findings = look(vec![account("active")], by_token(), sandbox).await;
    assert_eq!(errors(&findings), [""; 0], "{findings:#?}");
    assert_eq!(findings[0].text, "Twilio takes the token; the account is \"Stable\"");
    assert!(findings[1].text.contains("sandbox") && findings[2].text.contains("need not reach"));
    assert!(findings[3].text.contains("clock"));
}

#[tokio::test]
async fn an_account_that_cannot_be_used_is_all_that_is_told() {
    let findings = look(vec![refused("1.json")], by_token(), |_, _| {}).await;
    assert_eq!(findings.len(), 1);
    assert!(findings[0].fix.unwrap().contains("TWILIO_AUTH_TOKEN"));
    let findings = look(vec![account("suspended")], by_token(), |_, _| {}).await;
    assert_eq!(errors(&findings), ["the account is suspended"]);
    assert_eq!(findings.len(), 1);
    // An account that there is not is a wrong SID.
    let findings = look(Vec::new(), by_token(), |_, _| {}).await;
    assert!(findings[0].fix.unwrap().contains("TWILIO_ACCOUNT_SID"), "{findings:#?}");
}

#[tokio::test]
async fn a_key_is_tried_on_what_it_may_look_at() {
    // A standard key may not look at the account.
    let answers = || vec![no_messages(), refused("1.json")];
    let findings = look(answers(), by_key(None), |_, _| {}).await;
    assert_eq!(
        (errors(&findings).len(), findings[0].text.as_str()),
        (0, "Twilio takes the API key")
    );
    // The token beside it, by which Twilio is known, is looked at as well.
    let findings = look(answers(), by_key(Some("wrong")), |_, _| {}).await;
    assert!(matches!(errors(&findings)[..], [one] if one.contains("account")), "{findings:#?}");
    let answers = vec![refused("Messages.json"), account("active")];
    let findings = look(answers, by_key(Some("right")), |_, _| {}).await;
    assert!(matches!(errors(&findings)[..], [one] if one.contains("API key")), "{findings:#?}");
    assert!(findings[1].fix.unwrap().contains("TWILIO_API_SECRET"));
}

/// Looks at a number for WhatsApp that Twilio tells this of.
async fn with_sender(sender: &Value) -> Vec<Finding> {
    let senders = answer("GET /v2/Channels/Senders", 200, &json!({"senders": [sender]}));
    let answers = vec![account("active"), senders, no_file()];
    look(answers, by_token(), |url, twilio| {
        twilio.whatsapp_from = Some(NUMBER.to_owned());
        twilio.public_url = Some(url.to_owned());
        twilio.receive = Some(Receive::Polling);
    })
    .await
}

#[tokio::test]
async fn a_number_without_whatsapp_is_told_from_one_that_is_not_ready() {
    let id = format!("whatsapp:{NUMBER}");
    let findings = with_sender(&json!({"sender_id": id, "status": "ONLINE:UPDATING"})).await;
    assert_eq!(errors(&findings), [""; 0], "{findings:#?}");
    let findings = with_sender(&json!({"sender_id": id, "status": "OFFLINE"})).await;
    assert_eq!(errors(&findings), [format!("{NUMBER} is OFFLINE for WhatsApp")]);
    let findings = with_sender(&json!({"sender_id": "whatsapp:+1", "status": "ONLINE"})).await;
    assert_eq!(errors(&findings), [format!("{NUMBER} has no WhatsApp")]);
    assert_eq!(findings[1].fix, Some(SENDERS));
}

#[tokio::test]
async fn a_number_and_a_group_that_are_not_there_are_named() {
    let none = json!({"incoming_phone_numbers": []});
    let answers = vec![account("active"), answer("IncomingPhoneNumbers", 200, &none)];
    let findings = look(answers, by_token(), |_, twilio| {
        twilio.sms_from = Some(NUMBER.to_owned());
        twilio.groups = vec!["CH1".to_owned()];
    })
    .await;
    let wanted =
        [format!("{NUMBER} is not a number of this account"), "there is no group CH1".to_owned()];
    assert_eq!(errors(&findings), wanted);
}

#[tokio::test]
async fn whoever_answers_at_the_public_url_is_known_by_his_words() {
    let reached = |status: u16, body: &str| {
        let said = ("POST /twilio/messages", status, body.to_owned());
        let answers = vec![account("active"), said, no_file()];
        look(answers, by_token(), |url, twilio| twilio.public_url = Some(format!("{url}/")))
    };
    let findings = reached(403, FORGED).await;
    assert_eq!(errors(&findings), [""; 0], "{findings:#?}");
    assert!(findings[1].text.starts_with("a gateway answers at http://127.0.0.1:"));
    for (status, body) in [(403, "<html>Forbidden</html>"), (404, "not found"), (200, FORGED)] {
        let findings = reached(status, body).await;
        let is_it = |text: &&str| text.contains(&status.to_string()) && text.contains("is not");
        assert_eq!(errors(&findings).iter().filter(|text| is_it(text)).count(), 1, "{findings:#?}");
    }
    // Somewhere nobody listens any more.
    let gone = Server::start(Vec::new()).await.url.clone();
    let findings = look(vec![account("active")], by_token(), |_, twilio| {
        twilio.public_url = Some(gone);
    })
    .await;
    assert!(errors(&findings)[0].contains("could not be reached"), "{findings:#?}");
    assert!(findings[1].fix.unwrap().contains("ostler serve"));
}

#[tokio::test]
async fn a_proxy_that_does_not_pass_files_on_is_told_of() {
    for receive in [Receive::Webhook, Receive::Polling] {
        let reached = |answers| {
            look(answers, by_token(), |url, twilio| {
                twilio.public_url = Some(url.to_owned());
                twilio.receive = Some(receive);
            })
        };
        let findings = reached(vec![account("active"), gateway(), no_file()]).await;
        assert_eq!(errors(&findings), [""; 0], "{findings:#?}");
        let others = ("GET /media/x", 404, "<html>Not Found</html>".to_owned());
        let findings = reached(vec![account("active"), gateway(), others]).await;
        let wrong = errors(&findings);
        assert!(
            matches!(wrong[..], [one] if one.contains("/media/x answered with 404")),
            "{wrong:?}"
        );
    }
}
