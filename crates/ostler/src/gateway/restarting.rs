//! Starting again because somebody wants it: who asked is noted here, and whoever
//! runs the gateway does it.

use super::Gateway;
use crate::{
    clock::Millis,
    store::{
        StoreError,
        audit::{self, Entry},
    },
};

impl Gateway {
    /// Asks for the gateway to be stopped in order and started again.
    pub(crate) async fn ask_restart(&self, by: &str) -> Result<(), StoreError> {
        let entry = Entry {
            at: Millis::now(),
            actor: by.to_owned(),
            action: "gateway.restart".to_owned(),
            subject: self.name().to_owned(),
            detail: "{}".to_owned(),
        };
        let noted = self.shared.store.write(entry, |conn, entry| Box::pin(audit::add(conn, entry)));
        noted.await?;
        tracing::info!(by, "somebody wants the gateway to start again");
        self.shared.restart.cancel();
        Ok(())
    }

    /// Waits until somebody has asked for that.
    pub(crate) async fn restart_asked(&self) {
        self.shared.restart.cancelled().await;
    }
}
