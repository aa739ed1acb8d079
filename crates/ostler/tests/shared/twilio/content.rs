//! Content templates: texts that may begin a conversation on WhatsApp, once approved.

use serde_json::{Map, Value};

use super::{answer::Refusal, routes::field, world::World};

/// A text with places such as `{{1}}`.
#[derive(Clone, Debug)]
pub(super) struct Template {
    pub(super) text: String,
    pub(super) is_approved: bool,
}

/// A template whose places are filled in.
#[derive(Debug)]
pub(super) struct Filled {
    pub(super) sid: String,
    pub(super) text: String,
    pub(super) is_approved: bool,
}

/// Whether something can be filled in: it stands on one line, and has no more than four
/// spaces in a row.
fn is_taken(value: &str) -> bool {
    !value.is_empty() && !value.contains(['\n', '\r', '\t']) && !value.contains("     ")
}

impl World {
    /// Fills in the template that a form names, if it names one.
    pub(super) fn check_template(
        &self,
        form: &[(String, String)],
    ) -> Result<Option<Filled>, Refusal> {
        let Some(sid) = field(form, "ContentSid") else {
            let without = field(form, "ContentVariables").map(|_| "ContentSid Required");
            return without.map_or(Ok(None), |message| Err(Refusal::bad(21654, message)));
        };
        let Some(template) = self.templates.get(sid) else {
            return Err(Refusal::bad(21655, "The ContentSid is Invalid"));
        };
        let invalid = || Refusal::bad(21656, "The ContentVariables Parameter is invalid");
        let variables = field(form, "ContentVariables").unwrap_or("{}");
        let variables: Map<String, Value> =
            serde_json::from_str(variables).map_err(|_| invalid())?;
        let mut text = template.text.clone();
        for (place, value) in &variables {
            let value = value.as_str().filter(|value| is_taken(value)).ok_or_else(invalid)?;
            text = text.replace(&format!("{{{{{place}}}}}"), value);
        }
        let is_approved = template.is_approved;
        Ok(Some(Filled { sid: sid.to_owned(), text, is_approved }))
    }
}
