//! The four ways in which everything can be taken away.

use super::{experiment::Experiment, postgres::Server, stored::Where};

#[test]
fn a_killed_gateway_on_sqlite_loses_and_doubles_nothing() {
    let mut experiment = Experiment::new("sqlite");
    let stable = experiment.stable("data", None);
    let mut gateway = stable.start();
    experiment.send_to(&[stable.socket()]);
    for _ in 0..experiment.kills {
        experiment.wait_for_moment();
        gateway.kill();
        gateway = stable.start();
    }
    let store = stable.store();
    experiment.settle(vec![gateway], &stable, &Where::Sqlite(&store));
}

#[test]
fn a_killed_gateway_on_postgres_loses_and_doubles_nothing() {
    let Some(server) = Server::start_new() else { return };
    let url = server.url();
    let mut experiment = Experiment::new("postgres");
    let stable = experiment.stable("data", Some(&url));
    let mut gateway = stable.start();
    experiment.send_to(&[stable.socket()]);
    for _ in 0..experiment.kills {
        experiment.wait_for_moment();
        gateway.kill();
        gateway = stable.start();
    }
    experiment.settle(vec![gateway], &stable, &Where::Postgres(&url));
}

#[test]
fn a_database_that_is_killed_under_a_gateway_loses_and_doubles_nothing() {
    let Some(mut server) = Server::start_new() else { return };
    let url = server.url();
    let mut experiment = Experiment::new("postgres restarted");
    let stable = experiment.stable("data", Some(&url));
    let mut gateway = stable.start();
    experiment.send_to(&[stable.socket()]);
    for _ in 0..experiment.kills {
        experiment.wait_for_moment();
        server.crash();
        if experiment.chance.coin() {
            if experiment.chance.below(5) == 0 {
                experiment.wait_long();
            } else {
                experiment.wait_a_little();
            }
            server.start();
        } else {
            gateway.kill();
            server.start();
            gateway = stable.start();
        }
    }
    experiment.settle(vec![gateway], &stable, &Where::Postgres(&url));
}

#[test]
fn one_of_two_gateways_that_is_killed_loses_and_doubles_nothing() {
    let Some(server) = Server::start_new() else { return };
    let url = server.url();
    let mut experiment = Experiment::new("two gateways");
    let stables = ["one", "two"].map(|name| experiment.stable(name, Some(&url)));
    // One after the other: only one of them can make the tables.
    let mut gateways = stables.each_ref().map(|stable| Some(stable.start()));
    experiment.send_to(&stables.each_ref().map(|stable| stable.socket()));
    for _ in 0..experiment.kills {
        experiment.wait_for_moment();
        let which = usize::from(experiment.chance.coin());
        gateways[which].take().unwrap().kill();
        // The other one goes on alone.
        experiment.wait_for_acceptances(1);
        gateways[which] = Some(stables[which].start());
    }
    let gateways = gateways.into_iter().flatten().collect();
    experiment.settle(gateways, &stables[0], &Where::Postgres(&url));
}
