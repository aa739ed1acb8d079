//! Making Conversations, and bringing people into them, over the API.

use super::{
    answer::{Answer, Refusal, Reply},
    checks::is_number,
    routes::field,
    world::World,
};

/// The longest name, and the longest address.
const LONGEST: usize = 256;

impl World {
    pub(super) fn create_conversation(&mut self, form: &[(String, String)]) -> Answer {
        let name = field(form, "FriendlyName").unwrap_or("");
        if name.chars().count() > LONGEST {
            return Err(Refusal::invalid("FriendlyName"));
        }
        let sid = self.add_conversation(name, &[]);
        created(self.get_conversation(&sid))
    }

    /// Brings somebody in, by his number and the one of ours to which he writes.
    pub(super) fn create_participant(
        &mut self,
        conversation: &str,
        form: &[(String, String)],
    ) -> Answer {
        self.get_conversation(conversation)?;
        let address = field(form, "MessagingBinding.Address");
        let address = address.ok_or_else(|| Refusal::missing("MessagingBinding.Address"))?;
        let proxy = field(form, "MessagingBinding.ProxyAddress");
        let proxy =
            proxy.ok_or_else(|| Refusal::bad(50412, "Participant proxy address is empty"))?;
        if !is_address(address) {
            return Err(Refusal::bad(50407, "Invalid messaging binding address"));
        }
        if address == proxy {
            return Err(Refusal::bad(50409, "Participant address equals proxy address"));
        }
        if is_address(proxy) && is_whatsapp(address) != is_whatsapp(proxy) {
            let message = "Participant address type does not match proxy address type";
            return Err(Refusal::bad(50414, message));
        }
        if proxy != self.ours_for(address) {
            return Err(Refusal::bad(50408, "Invalid messaging binding proxy address"));
        }
        if self.conversations.values().any(|one| one.has_active(address)) {
            let message = "Participant and proxy address pair is already in use";
            return Err(Refusal::new(409, 50416, message));
        }
        let sid = self.add_participant(conversation, address);
        created(self.get_participant(conversation, &sid))
    }
}

fn created(found: Answer) -> Answer {
    found.map(|reply| match reply {
        Reply::Json(_, body) => Reply::Json(201, body),
        reply @ Reply::Redirect(_) => reply,
    })
}

fn is_address(address: &str) -> bool {
    let number = address.strip_prefix("whatsapp:").unwrap_or(address);
    address.len() <= LONGEST && is_number(number)
}

fn is_whatsapp(address: &str) -> bool {
    address.starts_with("whatsapp:")
}
