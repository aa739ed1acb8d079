//! What can be set in a session while it is open: the mode, the model, how much
//! is thought. Which values there are the agent says when it opens the session.

use serde_json::{Value, json};

use crate::request::{Options, Permissions, Thinking};

/// The ends of the names of modes in which an agent only looks.
const LOOKING: &[&str] = &["plan", "read-only", "readonly", "read_only"];
/// The ends of the names of modes in which an agent asks before it does
/// something. What other modes do without asking is not for us to know.
const ASKING: &[&str] = &["default", "ask", "approve"];

/// What can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Mode,
    Model,
    Thinking,
}

/// A value that is to be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) what: What,
    /// In the agent's words.
    pub(super) value: String,
    way: Way,
}

impl Change {
    /// Returns whether it is to keep a turn of these permissions from doing
    /// what it may not, so that there is no turn without it.
    pub(super) fn guards(&self, permissions: Permissions) -> bool {
        let is_guard = ends_with(&self.value, LOOKING) || ends_with(&self.value, ASKING);
        self.what == What::Mode && permissions != Permissions::Bypass && is_guard
    }

    /// Returns method and parameters of the request.
    pub(super) fn request(&self, session: &str) -> (&'static str, Value) {
        let value = &self.value;
        match &self.way {
            Way::Mode => ("session/set_mode", json!({ "sessionId": session, "modeId": value })),
            Way::Model => ("session/set_model", json!({ "sessionId": session, "modelId": value })),
            Way::Option(id) => (
                "session/set_config_option",
                json!({ "sessionId": session, "configId": id, "value": value }),
            ),
        }
    }
}

/// By which request a value is set.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Way {
    Mode,
    Model,
    /// The option of this name.
    Option(String),
}

/// Something with several values, of which one holds.
#[derive(Debug)]
struct Selector {
    way: Way,
    current: Option<String>,
    offers: Vec<Offer>,
}

#[derive(Debug)]
struct Offer {
    value: String,
    name: String,
}

impl Selector {
    fn read(way: Way, current: Option<&Value>, offers: Option<&Value>, id: &str) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let offers = offers.and_then(Value::as_array).into_iter().flatten();
        // Values may come in groups.
        let offers = offers.flat_map(|one| match one.get("options").and_then(Value::as_array) {
            Some(group) => group.iter().collect(),
            None => vec![one],
        });
        let offer = |one: &Value| {
            let value = one.get(id).and_then(text)?;
            let name = one.get("name").and_then(text).unwrap_or_else(|| value.clone());
            Some(Offer { value, name })
        };
        Self { way, current: current.and_then(text), offers: offers.filter_map(offer).collect() }
    }

    /// Reads the option of this category.
    fn read_option(told: &Value, category: &str) -> Option<Self> {
        let options = told.get("configOptions").and_then(Value::as_array);
        let is_it = |one: &&Value| {
            let has = |field: &str| one.get(field).and_then(Value::as_str);
            has("type") == Some("select") && has("category") == Some(category)
        };
        let one = options.into_iter().flatten().find(is_it)?;
        let way = Way::Option(one.get("id")?.as_str()?.to_owned());
        Some(Self::read(way, one.get("currentValue"), one.get("options"), "value"))
    }

    /// Finds the value that somebody means, by itself or by its name for people.
    fn find(&self, wanted: &str) -> Option<&str> {
        let is_value = |offer: &&Offer| offer.value == wanted;
        let is_name = |offer: &&Offer| offer.name.eq_ignore_ascii_case(wanted);
        let mut offers = self.offers.iter();
        let found = offers.clone().find(is_value).or_else(|| offers.find(is_name))?;
        Some(&found.value)
    }

    /// Finds the first value whose name ends like one of these.
    fn find_end(&self, ends: &[&str]) -> Option<&str> {
        let of_end = |end: &&str| self.offers.iter().find(|offer| ends_with(&offer.value, &[*end]));
        ends.iter().find_map(of_end).map(|offer| offer.value.as_str())
    }

    fn names(&self) -> String {
        let names: Vec<&str> = self.offers.iter().map(|offer| offer.name.as_str()).collect();
        names.join(", ")
    }
}

/// Returns whether the name is one of these, or an address that ends with one.
fn ends_with(value: &str, ends: &[&str]) -> bool {
    ends.iter().any(|known| end_of(value).eq_ignore_ascii_case(known))
}

fn end_of(value: &str) -> &str {
    value.rsplit(['#', '/', ':']).next().unwrap_or(value)
}

/// What an agent lets us set in a session.
#[derive(Debug, Default)]
pub(super) struct Settings {
    mode: Option<Selector>,
    model: Option<Selector>,
    thinking: Option<Selector>,
    /// The mode in which the session was opened.
    first_mode: Option<String>,
}

/// What follows from a wish.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// It is so already, or nothing is wished.
    Holds,
    /// This is to be set first.
    Set(Change),
    /// The agent cannot, and this is to be said about it.
    Cannot(String),
}

impl Settings {
    /// Reads what the agent says about a session that it has opened.
    pub(super) fn read(told: &Value) -> Self {
        let option = |category| Selector::read_option(told, category);
        let modes = told.get("modes").filter(|modes| modes.is_object()).map(|modes| {
            let (current, offers) = (modes.get("currentModeId"), modes.get("availableModes"));
            Selector::read(Way::Mode, current, offers, "id")
        });
        let mode = modes.or_else(|| option("mode"));
        let first_mode = mode.as_ref().and_then(|mode| mode.current.clone());
        let current = told.get("models").and_then(|models| models.get("currentModelId"));
        let models = Self::read_models(told).model.map(|models| Selector {
            current: current.and_then(Value::as_str).map(str::to_owned),
            ..models
        });
        let model = option("model").or(models);
        Self { mode, model, thinking: option("thought_level"), first_mode }
    }

    /// Reads the models only, and not which one is used: an agent may use
    /// another than it says.
    pub(super) fn read_models(told: &Value) -> Self {
        let models = told.get("models").filter(|models| models.is_object());
        let model = models.map(|models| {
            Selector::read(Way::Model, None, models.get("availableModels"), "modelId")
        });
        Self { model, ..Self::default() }
    }

    /// Returns what follows for one setting from the options of a turn.
    pub(super) fn wish(&self, what: What, options: &Options) -> Wish {
        match what {
            What::Mode => self.wish_mode(options.permissions),
            What::Model => match &options.model {
                None => Wish::Holds,
                Some(model) => self.wish_model(model),
            },
            What::Thinking => match options.thinking {
                None => Wish::Holds,
                Some(level) => self.wish_thinking(level),
            },
        }
    }

    fn wish_mode(&self, permissions: Permissions) -> Wish {
        let Some(mode) = &self.mode else { return Wish::Holds };
        let first = self.first_mode.as_deref().filter(|first| !ends_with(first, LOOKING));
        let any = || {
            let mut others = mode.offers.iter().filter(|offer| !ends_with(&offer.value, LOOKING));
            others.next().map(|offer| offer.value.as_str())
        };
        let wanted = match permissions {
            // What it asks for can be denied.
            Permissions::ReadOnly => mode.find_end(LOOKING).or_else(|| mode.find_end(ASKING)),
            // One that only looks is left for none that is not known to ask.
            Permissions::Ask => mode.find_end(ASKING).or(first),
            // Whatever it asks is allowed, so that any mode will do which does not only look.
            Permissions::Bypass => first.or_else(|| mode.find_end(ASKING)).or_else(any),
        };
        wanted.map_or(Wish::Holds, |value| mode.set(What::Mode, value))
    }

    /// Returns what cannot be relied on in the mode that is set.
    pub(super) fn doubt(&self, permissions: Permissions) -> Option<&'static str> {
        let mode = self.mode.as_ref().and_then(|mode| mode.current.as_deref());
        let is_in = |ends| mode.is_some_and(|mode| ends_with(mode, ends));
        match permissions {
            Permissions::ReadOnly if is_in(LOOKING) => None,
            Permissions::ReadOnly if is_in(ASKING) => Some(ONLY_ASKING),
            Permissions::ReadOnly => Some(NO_READING),
            Permissions::Ask if is_in(ASKING) => None,
            Permissions::Ask => Some(NO_ASKING),
            Permissions::Bypass => None,
        }
    }

    fn wish_model(&self, wanted: &str) -> Wish {
        let Some(model) = &self.model else {
            // Some agents take a model though they offer none.
            let change = Change { what: What::Model, value: wanted.to_owned(), way: Way::Model };
            return Wish::Set(change);
        };
        match (model.find(wanted), &model.way) {
            (Some(value), _) => model.set(What::Model, value),
            // Other names for a model are for the agent to know.
            (None, Way::Model) => model.set(What::Model, wanted),
            (None, Way::Mode | Way::Option(_)) => Wish::Cannot(format!(
                "the agent does not offer the model {wanted}, which is ignored; there are: {}",
                model.names()
            )),
        }
    }

    fn wish_thinking(&self, level: Thinking) -> Wish {
        let words: &[&str] = match level {
            Thinking::Off => &["off", "none"],
            Thinking::Minimal => &["minimal"],
            Thinking::Low => &["low"],
            Thinking::Medium => &["medium"],
            Thinking::High => &["high"],
        };
        let thinking = self.thinking.as_ref();
        let found = thinking
            .and_then(|known| Some((known, words.iter().find_map(|word| known.find(word))?)));
        match found {
            Some((known, value)) => known.set(What::Thinking, value),
            None => Wish::Cannot("the agent cannot be told how much to think".to_owned()),
        }
    }

    /// Returns whether a model can be chosen from a list.
    pub(super) fn has_models(&self) -> bool {
        self.model.is_some()
    }

    /// Returns whether the level of thinking can be chosen.
    pub(super) fn can_think(&self, level: Thinking) -> bool {
        !matches!(self.wish_thinking(level), Wish::Cannot(_))
    }

    /// Notes that something has been set.
    pub(super) fn done(&mut self, change: &Change) {
        let selector = self.selector(change.what);
        match selector {
            Some(selector) => selector.current = Some(change.value.clone()),
            None => {
                let (way, current) = (change.way.clone(), Some(change.value.clone()));
                *selector = Some(Selector { way, current, offers: Vec::new() });
            }
        }
    }

    /// Returns what to say of an agent that is in another mode than it was put into.
    pub(super) fn contradicts(&self, change: &Change) -> Option<String> {
        let mode = self.mode.as_ref().filter(|_| change.what == What::Mode)?;
        let current = mode.current.as_deref()?;
        let is_other = !ends_with(current, &[end_of(&change.value)]);
        is_other
            .then(|| format!("the agent stays in the mode {current} instead of {}", change.value))
    }

    /// Notes that it is not known any more what is set.
    pub(super) fn forget(&mut self, what: What) {
        if let Some(selector) = self.selector(what) {
            selector.current = None;
        }
    }

    fn selector(&mut self, what: What) -> &mut Option<Selector> {
        match what {
            What::Mode => &mut self.mode,
            What::Model => &mut self.model,
            What::Thinking => &mut self.thinking,
        }
    }

    /// Takes what the agent says about its options.
    pub(super) fn options_are(&mut self, told: &Value) {
        for (category, what) in
            [("mode", What::Mode), ("model", What::Model), ("thought_level", What::Thinking)]
        {
            let Some(now) = Selector::read_option(told, category) else { continue };
            match self.selector(what) {
                // What is set by a request of its own stays so.
                Some(known) if !matches!(known.way, Way::Option(_)) => known.current = now.current,
                selector => *selector = Some(now),
            }
        }
    }

    /// Notes that the agent has changed its mode by itself.
    pub(super) fn mode_is(&mut self, value: String) {
        if let Some(mode) = &mut self.mode {
            mode.current = Some(value);
        }
    }

    /// Returns the model that was set, in the agent's words.
    pub(super) fn chosen_model(&self) -> Option<String> {
        self.model.as_ref()?.current.clone()
    }

    /// Returns the name of the model that is set.
    pub(super) fn model(&self) -> Option<String> {
        let model = self.model.as_ref()?;
        let current = model.current.as_ref()?;
        let offer = model.offers.iter().find(|offer| offer.value == *current);
        Some(offer.map_or(current, |offer| &offer.name).clone())
    }
}

impl Selector {
    fn set(&self, what: What, value: &str) -> Wish {
        if self.current.as_deref() == Some(value) {
            return Wish::Holds;
        }
        Wish::Set(Change { what, value: value.to_owned(), way: self.way.clone() })
    }
}

const NO_READING: &str = "the agent has no read-only mode: what it asks for is denied, \
                          but what it does without asking cannot be prevented";
const ONLY_ASKING: &str = "the agent has no read-only mode: it is in one that asks, and what it \
                           asks for is denied, but what it does without asking cannot be prevented";
const NO_ASKING: &str = "the agent has no mode that is known to ask: \
                         what it does without asking cannot be asked about";

#[cfg(test)]
mod tests;
