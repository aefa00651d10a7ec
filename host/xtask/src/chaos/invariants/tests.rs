use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn machine(id: &str, claim: &str, status: &str) -> Value {
    json!({"id": id, "status": status, "tags": {NODE_CLAIM: claim}})
}

fn claim(name: &str, pool: &str, id: Option<&str>) -> Value {
    json!({
        "metadata": {"name": name, "labels": {NODE_POOL: pool, "node.kubernetes.io/instance-type": "ecs.g7.2xlarge"}},
        "status": {"providerID": id.map(|id| format!("cn-hangzhou.{id}")), "nodeName": "n"},
    })
}

fn kinds(seen: &Invariants) -> Vec<&'static str> {
    seen.breaches().iter().map(|it| it.kind).collect()
}

fn after(worlds: impl IntoIterator<Item = (i64, World)>) -> Invariants {
    let mut seen = Invariants::default();
    for (second, world) in worlds {
        let sight = Sight {
            world,
            ..Sight::default()
        };
        seen.see(&sight, at(second));
    }
    seen
}

fn world(instances: Vec<Value>, claims: Vec<Value>) -> World {
    World {
        instances,
        claims,
        ..World::default()
    }
}

#[test]
fn a_second_machine_for_a_claim_is_found_even_when_the_first_is_gone() {
    let claims = || vec![claim("c", WILD, Some("i-1"))];
    let one = world(vec![machine("i-1", "c", "Running")], claims());
    let two = world(
        vec![machine("i-1", "c", "Running"), machine("i-2", "c", "Gone")],
        claims(),
    );

    assert_eq!(kinds(&after([(0, one.clone())])), [""; 0]);
    assert!(kinds(&after([(0, one), (1, two)])).contains(&"double"));
}

#[test]
fn a_machine_without_a_claim_is_found_after_a_time_and_not_before() {
    let lonely = || world(vec![machine("i-1", "c", "Running")], vec![]);

    assert_eq!(kinds(&after([(0, lonely()), (100, lonely())])), [""; 0]);
    assert_eq!(kinds(&after([(0, lonely()), (101, lonely())])), ["leaked"]);
}

#[test]
fn a_machine_that_goes_under_a_claim_that_stays_is_found() {
    let gone = |deleted: Option<&str>| {
        let mut claim = claim("c", WILD, Some("i-1"));
        claim["metadata"]["deletionTimestamp"] = json!(deleted);
        world(vec![machine("i-1", "c", "Gone")], vec![claim])
    };

    assert_eq!(kinds(&after([(0, gone(None))])), ["deleted"]);
    assert_eq!(kinds(&after([(0, gone(Some("now")))])), [""; 0]);
}

#[test]
fn a_machine_whose_launch_no_claim_was_seen_with_is_found_at_the_second_look() {
    let machine = json!({"id": "i-1", "status": "Running", "tags": {LAUNCH_GROUP: "g"}});
    let look = |group: Option<&str>| {
        let mut claim = claim("c", WILD, None);
        claim["metadata"]["annotations"] = json!({LAUNCH_GROUP: group});
        world(vec![machine.clone()], vec![claim])
    };

    assert_eq!(kinds(&after([(0, look(None))])), [""; 0]);
    assert_eq!(
        kinds(&after([(0, look(None)), (1, look(None))])),
        ["unrecorded"]
    );
    assert_eq!(
        kinds(&after([(0, look(None)), (1, look(Some("g")))])),
        [""; 0]
    );
    let left = [(0, look(Some("g"))), (1, look(None)), (2, look(None))];
    assert_eq!(kinds(&after(left)), [""; 0]);
}

#[test]
fn a_machine_that_goes_under_the_claim_that_names_it_is_found_without_its_tag() {
    let machine = json!({"id": "i-1", "status": "Gone", "tags": {}});
    let seen = world(vec![machine], vec![claim("c", WILD, Some("i-1"))]);

    assert_eq!(kinds(&after([(0, seen)])), ["deleted"]);
}

#[test]
fn two_nodes_of_the_steady_pool_that_leave_are_one_too_many() {
    let leaving = |count: usize| {
        let claims = (0..count).map(|idx| {
            let mut claim = claim(&format!("c-{idx}"), STEADY, None);
            claim["metadata"]["deletionTimestamp"] = json!("now");
            claim
        });
        world(vec![], claims.collect())
    };

    assert_eq!(kinds(&after([(0, leaving(1))])), [""; 0]);
    assert_eq!(kinds(&after([(0, leaving(2))])), ["budget"]);
}

fn guard(index: usize, ready: &str) -> Value {
    json!({
        "metadata": {"uid": format!("u-{index}"), "labels": {"app": "guard-0"}},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    })
}

fn after_hearing(news: impl IntoIterator<Item = Heard>) -> Invariants {
    let mut seen = Invariants::default();
    news.into_iter().for_each(|one| seen.hear(one));
    seen
}

#[test]
fn one_pod_of_a_guard_may_be_away_and_two_may_not() {
    let up = |count: usize| Heard::All((0..count).map(|index| guard(index, "True")).collect());

    let one_away = [up(0), up(GUARD_PODS), up(GUARD_PODS - 1)];
    assert_eq!(kinds(&after_hearing(one_away)), [""; 0]);
    assert_eq!(
        kinds(&after_hearing([up(GUARD_PODS), up(GUARD_PODS - 2)])),
        ["podBudget"]
    );
}

#[test]
fn a_gap_that_is_filled_before_the_next_look_is_found() {
    let whole = || Heard::All((0..GUARD_PODS).map(|index| guard(index, "True")).collect());
    let replaced = [
        whole(),
        Heard::Gone(guard(0, "True")),
        Heard::Changed(guard(10, "False")),
        Heard::Changed(guard(10, "True")),
        Heard::Gone(guard(1, "True")),
    ];
    assert_eq!(kinds(&after_hearing(replaced)), [""; 0], "one by one");

    let both = [
        whole(),
        Heard::Gone(guard(0, "True")),
        Heard::Gone(guard(1, "True")),
        Heard::Changed(guard(10, "True")),
        Heard::Changed(guard(11, "True")),
    ];
    assert_eq!(kinds(&after_hearing(both)), ["podBudget"]);
}

#[test]
fn claims_above_the_limit_are_found_and_those_that_leave_do_not_count() {
    let count = usize::try_from(LIMIT_CPU / 8).unwrap();
    let claims = |count: usize| {
        (0..count)
            .map(|idx| claim(&format!("c-{idx}"), WILD, None))
            .collect()
    };
    let full = world(vec![], claims(count));
    let mut over = world(vec![], claims(count + 1));

    assert_eq!(kinds(&after([(0, full)])), [""; 0]);
    assert_eq!(kinds(&after([(0, over.clone())])), ["limit"]);
    over.claims[0]["metadata"]["deletionTimestamp"] = json!("now");
    assert_eq!(kinds(&after([(0, over)])), [""; 0]);
}

#[test]
fn who_launches_while_another_holds_the_lease_is_found() {
    let holders: Vec<(Timestamp, Option<String>)> = (0..10)
        .map(|second| {
            (
                at(second),
                Some(if second < 5 { "a" } else { "b" }.to_owned()),
            )
        })
        .collect();

    assert_eq!(other_holder(&holders, "a", at(4)), None);
    assert_eq!(
        other_holder(&holders, "a", at(6)),
        None,
        "it may not know yet"
    );
    assert_eq!(other_holder(&holders, "a", at(8)).as_deref(), Some("b"));
    assert_eq!(other_holder(&holders, "b", at(8)), None);
}

#[test]
fn the_end_is_reached_when_claims_machines_nodes_and_pods_fit() {
    let mut whole = claim("c", WILD, Some("i-1"));
    whole["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    let mut world = world(vec![machine("i-1", "c", "Running")], vec![whole]);
    world.nodes = vec![json!({"metadata": {"name": "n"}})];
    world.pods = vec![json!({"metadata": {"name": "p", "uid": "u"}, "spec": {"nodeName": "n"}})];
    let none = BTreeSet::new();
    assert_eq!(unsettled(&world, &none), [""; 0]);

    world.pods[0]["spec"]["nodeName"] = json!(null);
    assert_eq!(unsettled(&world, &none).len(), 1);
    assert_eq!(
        unsettled(&world, &BTreeSet::from(["u".to_owned()])),
        [""; 0]
    );
    world.instances.push(machine("i-2", "d", "Running"));
    assert_eq!(
        unsettled(&world, &BTreeSet::from(["u".to_owned()])).len(),
        1
    );
}
