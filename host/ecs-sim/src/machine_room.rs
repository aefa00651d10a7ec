//! The machines: each instance runs its user data, joins the cluster if that says so, and goes away.

use crate::app::App;

#[derive(Debug)]
pub(crate) struct MachineRoom {}

impl App {
    pub(crate) async fn live(&self, id: &str) {
        let _ = id;
    }

    pub(crate) async fn release(&self, id: &str) {
        let _ = id;
    }
}
