//! What is wrong with a file is told with key and place.

use super::load;

#[test]
fn what_is_wrong_with_a_file_is_told_with_key_and_place() {
    let agent = |rest: &str| format!("{{\n  agents: {{\n    own: {{ {rest} }}\n  }}\n}}");
    let whole = "dialect: 'acp', command: ['x']";
    let file = "ostler.json5";
    for (text, place, words) in [
        (String::new(), file, "EOF"),
        ("\0\u{1}garbage".to_owned(), file, "expected"),
        ("{ agents: {".to_owned(), file, "EOF"),
        ("{ agents: }".to_owned(), "ostler.json5:1:11", "expected"),
        ("{} {}".to_owned(), "ostler.json5:1:4", "trailing"),
        ("[]".to_owned(), "ostler.json5:1:1", "expected an object with gateway, agent"),
        ("null".to_owned(), "ostler.json5:1:1", "expected an object"),
        ("{ agnt: {} }".to_owned(), "ostler.json5:1:3: agnt", "did you mean `agent`"),
        ("{ max_turns: 5 }".to_owned(), "1:3: max_turns", "did you mean `agent.max_turns`"),
        ("{ colour: 5 }".to_owned(), "1:3: colour", "there are gateway, agent, agents"),
        ("{ agents: [] }".to_owned(), "ostler.json5:1:11: agents", "expected"),
        (
            "{ agent: { default: 'duck' } }".to_owned(),
            "1:21: agent.default",
            "valid agents: claude",
        ),
        ("{ agent: { max_turns: Infinity } }".to_owned(), "1:23: agent.max_turns", "no finite"),
        ("{ busy: 'later' }".to_owned(), "1:9: busy", "none of queue, combine, steer, interrupt"),
        ("{ busy: 'queue', busy: 'steer' }".to_owned(), "1:18: busy", "there twice"),
        ("{ gateway: { listen: 'here' } }".to_owned(), "1:22: gateway.listen", "127.0.0.1:8474"),
        (
            "{ opencode: { enabled: true, url: 'ftp://h' } }".to_owned(),
            "1:35: opencode.url",
            "http://",
        ),
        ("{ inbound: { reply: {} } }".to_owned(), "1:21: inbound.reply", "missing key `agent`"),
        (
            "{ inbound: { reply: { agent: {} } } }".to_owned(),
            "1:30: inbound.reply.agent",
            "missing key `kind`",
        ),
        (
            "{ inbound: { reply: { agent: { kind: 'pi' }, mode: 'text' } } }".to_owned(),
            "inbound.reply.mode",
            "needs the key `text`",
        ),
        (
            "{ inbound: { reply: { agent: { kind: 'pi' }, command: ['/bin/{{From}}'] } } }"
                .to_owned(),
            "1:55: inbound.reply.command",
            "must not depend on the message",
        ),
        (
            "{ inbound: { reply: { agent: { kind: 'pi' },
               command: ['env', '/bin/bash', '-lc', 'pi -p \"{{Body}}\"'] } } }"
                .to_owned(),
            "2:25: inbound.reply.command",
            "a shell would run what people write",
        ),
        (
            "{ inbound: { reply: { agent: { kind: 'pi' }, mediaUrl: 'file:///x' } } }".to_owned(),
            "1:56: inbound.reply.mediaUrl",
            "http or https URL, or a path",
        ),
        (
            "{ media: { transcribe: { command: ['/bin/{{MediaPath}}'] } } }".to_owned(),
            "1:35: media.transcribe.command",
            "must not depend on the file",
        ),
        (
            "{ media: { transcribe: { command: ['sh', '-c', 'whisper {{MediaPath}}'] } } }"
                .to_owned(),
            "1:35: media.transcribe.command",
            "a shell would run the name of the file",
        ),
        (
            "{ media: { transcribe: { timeout: '11m' } } }".to_owned(),
            "1:35: media.transcribe.timeout",
            "give 10m at most",
        ),
        (
            "{ inbound: { reply: { agent: { kind: 'claude' }, claudeOutputFormat: 'json' } } }"
                .to_owned(),
            "1:50: inbound.reply.claudeOutputFormat",
            "format: 'json'",
        ),
        ("{ claudeCliPath: 'x' }".to_owned(), "1:3: claudeCliPath", "agent: { path"),
        (
            agent("dialect: 'acp', comand: ['x']"),
            "ostler.json5:3:28: agents.own.comand",
            "`command`",
        ),
        (agent("dialect: 'acp'"), "ostler.json5:3:10: agents.own", "missing key `command`"),
        (agent("command: ['x']"), "ostler.json5:3:10: agents.own", "missing key `dialect`"),
        (
            agent("dialect: 'mcp', command: ['x']"),
            "3:21: agents.own.dialect",
            "\"mcp\" is none of acp",
        ),
        (agent("dialect: 'acp', command: 'x'"), "3:37: agents.own.command", "expected"),
        (agent("dialect: 'acp', command: []"), "3:37: agents.own.command", "no program"),
        (agent("dialect: 'acp', command: ['']"), "agents.own.command", "no program"),
        (agent("dialect: 'acp', command: ['x', 1]"), "agents.own.command[1]", "expected"),
        (agent(&format!("{whole}, version: []")), "agents.own.version", "no program"),
        (agent(&format!("{whole}, env: {{ A: 1 }}")), "agents.own.env.A", "expected"),
        (agent(&format!("{whole}, env: {{ 'A=B': '' }}")), "agents.own.env", "A=B"),
        (agent(&format!("{whole}, env: {{ A: '', A: '' }}")), "agents.own.env.A", "there twice"),
        (agent(&format!("{whole}, pass_env: ['OPENAI_*']")), "agents.own.pass_env[0]", "exact"),
        (agent(&format!("{whole}, command: ['y']")), "agents.own", "duplicate"),
        ("{ agents: { Own: {} } }".to_owned(), "ostler.json5:1:13: agents", "no name"),
        ("{ agents: { claude: {} } }".to_owned(), "ostler.json5:1:13: agents", "taken"),
        ("{ agents: { claudecode: {} } }".to_owned(), "ostler.json5:1:13: agents", "taken"),
        (
            format!("{{ agents: {{ a: {{ {whole} }}, a: {{ {whole} }} }} }}"),
            "agents.a",
            "there twice",
        ),
    ] {
        let said = load(&text).expect_err(&text);
        assert!(said.contains(place) && said.contains(words), "{text}\n  {said}");
        assert!(said.starts_with("ostler.json5") && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn what_is_wrong_with_an_account_at_twilio_is_told_with_what_to_write() {
    for (written, words) in [
        ("account_sid: 'AC123'", "it begins with AC, and 32 digits follow"),
        ("whatsapp_from: '0151 12345678'", "give one such as '+4915112345678'"),
        ("whatsapp_from: 14155238886", "write it in quotes: '+14155238886'"),
        ("sms_from: 'whatsapp:+14155238886'", "give one such as '+4915112345678'"),
        ("allow_from: ['Ann']", "give one such as '+4915112345678'"),
        ("allow_from: [4915112345678]", "write it in quotes: '+4915112345678'"),
        ("groups: ['MG00000000000000000000000000000001']", "it begins with CH"),
        ("group_patterns: ['(bot']", "\"(bot\" is no pattern: unclosed group"),
        (r"group_patterns: ['^bot\b']", "write each backslash twice"),
        ("group_patterns: ['']", "would be found in everything"),
        ("group_patterns: '^bot'", "expected a list of patterns, found a text"),
        ("public_url: 'ostler.example.org'", "such as https://ostler.example.org"),
        ("public_url: 'ostler.example.org:8474'", "such as https://ostler.example.org"),
        ("public_url: 'wss://ostler.example.org'", "begins with http:// or https://"),
        ("public_url: 'https://ostler.example.org/?a=b'", "something behind its path"),
        ("public_url: 'https://ostler.example.org/twilio/messages'", "leave the paths"),
        ("receive: 'push'", "none of webhook, polling"),
        ("poll_every: '1h'", "give 5m at most"),
    ] {
        let text = format!("{{ twilio: {{ {written} }} }}");
        let said = load(&text).expect_err(&text);
        let key = written.split_once(':').unwrap().0;
        assert!(said.contains(&format!("twilio.{key}")) && said.contains(words), "{said}");
    }
    // Below a path of somebody else's it can be reached as well.
    for url in ["https://example.org", "https://example.org/", "https://example.org/ostler"] {
        assert!(load(&format!("{{ twilio: {{ public_url: '{url}' }} }}")).is_ok(), "{url}");
    }
}
