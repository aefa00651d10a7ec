//! What we would send, against what the official Python SDK sent for the same call.
//!
//! The recordings are made by `tests/record-sdk` and by the authors of the reference; nothing here compares our
//! encoder with itself. Requests are compared as a server reads them: parameters decoded and in any order, booleans
//! in either spelling.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests, which the lint takes for product code"
)]

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kerf_cloud::Credentials;
use kerf_cloud::actions::cluster::{AttachScript, attach_script_request, cluster_detail_request};
use kerf_cloud::actions::images::{ImageFilter, describe_images_request};
use kerf_cloud::actions::instances::{
    InstanceFilter, delete_instance_request, delete_instances_request, describe_instances_request,
};
use kerf_cloud::actions::network::{
    NetworkFilter, describe_security_groups_request, describe_vswitches_request,
};
use kerf_cloud::actions::price::{describe_price_request, describe_spot_price_history_request};
use kerf_cloud::actions::run_instances::{
    DataDiskParams, RunInstances, SystemDiskParams, run_instances_request,
};
use kerf_cloud::actions::spot::describe_spot_advice_request;
use kerf_cloud::actions::stock::{
    StockMarket, describe_available_resource_request, describe_zones_request,
};
use kerf_cloud::actions::tags::tag_instances_request;
use kerf_cloud::actions::types::describe_instance_types_request;
use kerf_cloud::rpc::sign::{Signed, Stamp, sign};
use kerf_cloud::rpc::{Request, SignatureVersion};
use serde::Deserialize;
use serde_json::Value;

const REGION: &str = "cn-hangzhou";

#[derive(Deserialize)]
struct Recording {
    name: String,
    requests: Vec<Recorded>,
}

#[derive(Deserialize)]
struct Recorded {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: String,
}

fn recorded(name: &str) -> Recorded {
    let all = include_str!("fixtures/python-sdk-wire-more.json");
    let all: Vec<Recording> = serde_json::from_str(all).unwrap();
    let found = all.into_iter().find(|recording| recording.name == name);
    found
        .unwrap_or_else(|| panic!("no recording {name}"))
        .requests
        .remove(0)
}

/// A request as a server reads it.
#[derive(Debug, PartialEq)]
struct AsRead {
    method: String,
    path: String,
    query: BTreeMap<String, String>,
    body: Option<Value>,
    /// Names of the headers that carry meaning, with the values that do not change per attempt.
    headers: BTreeMap<String, String>,
}

fn as_read(method: &str, target: &str, headers: &[(String, String)], body: &str) -> AsRead {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let decode = |text: &str| {
        let text = text.replace('+', " ");
        percent_encoding::percent_decode_str(&text)
            .decode_utf8()
            .unwrap()
            .into_owned()
    };
    // The Python SDK writes `True`, the Go SDK `true`; the server takes both.
    let same = |text: String| match text.as_str() {
        "True" => "true".to_owned(),
        "False" => "false".to_owned(),
        _ => text,
    };
    let query = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap();
            (decode(key), same(decode(value)))
        });
    AsRead {
        method: method.to_owned(),
        path: path.to_owned(),
        query: query.collect(),
        body: (!body.is_empty()).then(|| serde_json::from_str(body).unwrap()),
        headers: headers
            .iter()
            .filter_map(|(name, value)| header(name, value))
            .collect(),
    }
}

fn header(name: &str, value: &str) -> Option<(String, String)> {
    let name = name.to_lowercase();
    let value = match name.as_str() {
        "accept"
        | "content-type"
        | "x-acs-action"
        | "x-acs-version"
        | "x-acs-content-sha256"
        | "x-acs-signature-method"
        | "x-acs-signature-version" => value.to_owned(),
        // These differ in every attempt; that they are there is what counts.
        "date" | "x-acs-date" | "x-acs-signature-nonce" => "set".to_owned(),
        // Each SDK signs another set of headers; what ours must hold is checked in `check`.
        "authorization" => value.split_once(' ')?.0.to_owned(),
        _ => return None,
    };
    Some((name, value))
}

fn signed(request: &Request, version: SignatureVersion) -> Signed {
    let credentials = Credentials::access_key("LTAItestid", "testsecret");
    let now: Timestamp = "2026-11-27T21:05:27Z".parse().unwrap();
    let stamp = Stamp {
        now,
        nonce: "0f8fad5bd9cb469fa16570867728950e",
    };
    sign(request, "127.0.0.1:1", version, &credentials, stamp)
}

fn check(name: &str, request: &Request) {
    check_acs3(name, request);
    check_v1(name, request);
}

fn check_acs3(name: &str, request: &Request) {
    let theirs = recorded(name);
    let ours = signed(request, SignatureVersion::Acs3);
    let must_be_signed: BTreeSet<_> = ours
        .headers
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| name.starts_with("x-acs-") || ["host", "content-type"].contains(name))
        .collect();
    let authorization = ours
        .headers
        .iter()
        .find(|(name, _)| name == "authorization")
        .unwrap();
    let names = authorization.1.split("SignedHeaders=").nth(1).unwrap();
    let names: BTreeSet<_> = names.split(',').next().unwrap().split(';').collect();

    let sent = as_read(ours.method, &ours.target, &ours.headers, &ours.body);
    let mut expected = as_read(
        &theirs.method,
        &theirs.target,
        &theirs.headers,
        &theirs.body,
    );
    // The body's hash depends on white space and key order, which JSON leaves open.
    if sent.body.is_some() {
        let hash = sent.headers["x-acs-content-sha256"].clone();
        expected
            .headers
            .insert("x-acs-content-sha256".to_owned(), hash);
    }

    assert_eq!(sent, expected, "{name}");
    assert_eq!(names, must_be_signed, "{name}");
}

/// Parameters that say who signs and when.
const PER_ATTEMPT: [&str; 3] = ["Timestamp", "SignatureNonce", "Signature"];

fn check_v1(name: &str, request: &Request) {
    let theirs = recorded(&format!("{name} v2"));
    let ours = signed(request, SignatureVersion::V1);

    let mut sent = as_read(ours.method, &ours.target, &ours.headers, &ours.body);
    let mut expected = as_read(
        &theirs.method,
        &theirs.target,
        &theirs.headers,
        &theirs.body,
    );
    for read in [&mut sent, &mut expected] {
        for (name, value) in &mut read.query {
            if PER_ATTEMPT.contains(&name.as_str()) {
                "set".clone_into(value);
            }
        }
        // The value is not case-sensitive.
        if let Some(format) = read.query.get_mut("Format") {
            *format = format.to_lowercase();
        }
        if request.is_rpc() {
            // In this style the parameters say everything; the SDK repeats two of them as headers.
            read.headers.clear();
        }
    }

    assert_eq!(sent, expected, "{name} v1");
}

fn texts(values: &[&str]) -> Vec<String> {
    values.iter().map(|value| (*value).to_owned()).collect()
}

fn tags(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

fn full_run() -> RunInstances {
    RunInstances {
        instance_type: "ecs.g7.xlarge".to_owned(),
        image_id: "aliyun_3_x64_20G_alibase_20240528.vhd".to_owned(),
        vswitch_id: "vsw-1".to_owned(),
        security_group_ids: texts(&["sg-1", "sg-2"]),
        amount: 3,
        min_amount: Some(1),
        client_token: "kerf-1a2b".to_owned(),
        instance_name: "default-abcde".to_owned(),
        user_data: "IyEvYmluL2Jhc2gK".to_owned(),
        key_pair_name: "ops".to_owned(),
        password_inherit: false,
        launch_template_id: String::new(),
        private_pool_match: String::new(),
        private_pool_id: String::new(),
        ram_role_name: "KubernetesWorkerRole".to_owned(),
        resource_group_id: "rg-1".to_owned(),
        system_disk: SystemDiskParams {
            category: "cloud_essd".to_owned(),
            size_gib: 120,
            performance_level: "PL0".to_owned(),
            encrypted: true,
            kms_key_id: "key-1".to_owned(),
        },
        data_disks: vec![
            DataDiskParams {
                category: "cloud_essd".to_owned(),
                size_gib: 100,
                performance_level: "PL1".to_owned(),
                device: "/dev/xvdb".to_owned(),
                snapshot_id: "s-1".to_owned(),
                encrypted: true,
                kms_key_id: "key-2".to_owned(),
                delete_with_instance: true,
            },
            DataDiskParams {
                category: "cloud_auto".to_owned(),
                size_gib: 40,
                ..DataDiskParams::default()
            },
        ],
        spot_strategy: "SpotWithPriceLimit".to_owned(),
        spot_price_limit: Some(0.125),
        spot_duration: Some(0),
        spot_interruption_behavior: "Terminate".to_owned(),
        http_endpoint: "enabled".to_owned(),
        http_tokens: "required".to_owned(),
        http_put_response_hop_limit: Some(2),
        internet_charge_type: "PayByTraffic".to_owned(),
        internet_max_bandwidth_out: Some(5),
        tags: tags(&[("karpenter.sh/nodepool", "节点 a+b*c~d"), ("empty", "")]),
    }
}

#[test]
fn run_instances_is_encoded_as_the_sdk_does() {
    check(
        "RunInstances full",
        &run_instances_request(REGION, &full_run()),
    );

    let plain = RunInstances {
        instance_type: "ecs.c7.large".to_owned(),
        image_id: "img-1".to_owned(),
        vswitch_id: "vsw-1".to_owned(),
        security_group_ids: texts(&["sg-1"]),
        amount: 1,
        client_token: "kerf-2".to_owned(),
        system_disk: SystemDiskParams {
            category: "cloud_essd".to_owned(),
            size_gib: 40,
            ..SystemDiskParams::default()
        },
        spot_strategy: "NoSpot".to_owned(),
        ..RunInstances::default()
    };
    check(
        "RunInstances on-demand",
        &run_instances_request(REGION, &plain),
    );
}

#[test]
fn instance_calls_are_encoded_as_the_sdk_does() {
    let by_id = InstanceFilter {
        ids: texts(&["i-1", "i-2"]),
        ..InstanceFilter::default()
    };
    let by_tags = InstanceFilter {
        tags: tags(&[
            ("karpenter.sh/managed-by", "kerf"),
            ("karpenter.sh/cluster-id", "c-1"),
        ]),
        ..InstanceFilter::default()
    };
    let token = "caeba0bbb2be03f84eb48b699f0a4883==";

    check(
        "DescribeInstances by id",
        &describe_instances_request(REGION, &by_id, ""),
    );
    check(
        "DescribeInstances by tags",
        &describe_instances_request(REGION, &by_tags, token),
    );
    let ids = texts(&["i-1", "i-2"]);
    check(
        "DeleteInstances",
        &delete_instances_request(REGION, &ids, "kerf-del-1"),
    );
    check("DeleteInstance", &delete_instance_request("i-1"));
    let name = tags(&[("Name", "node-1")]);
    check(
        "TagResources",
        &tag_instances_request(REGION, &texts(&["i-1"]), &name),
    );
}

#[test]
fn catalog_calls_are_encoded_as_the_sdk_does() {
    check(
        "DescribeInstanceTypes",
        &describe_instance_types_request("t+/="),
    );
    let stock = |market| describe_available_resource_request(REGION, market);
    check(
        "DescribeAvailableResource on-demand",
        &stock(StockMarket::OnDemand),
    );
    check("DescribeAvailableResource spot", &stock(StockMarket::Spot));
    check("DescribeZones", &describe_zones_request(REGION));
    check("DescribeSpotAdvice", &describe_spot_advice_request(REGION));
    check(
        "DescribePrice",
        &describe_price_request(REGION, "ecs.g7.xlarge", "cn-hangzhou-h", "cloud_essd"),
    );
    check(
        "DescribeSpotPriceHistory of all zones",
        &describe_spot_price_history_request(REGION, "ecs.g7.xlarge", 0),
    );
}

#[test]
fn selector_calls_are_encoded_as_the_sdk_does() {
    let discovery = tags(&[("karpenter.sh/discovery", "my-cluster")]);
    let groups = NetworkFilter {
        ids: texts(&["sg-1", "sg-2"]),
        ..NetworkFilter::default()
    };
    let named = NetworkFilter {
        name: "nodes".to_owned(),
        tags: discovery.clone(),
        ..NetworkFilter::default()
    };
    let switches = NetworkFilter {
        ids: texts(&["vsw-1", "vsw-2"]),
        ..NetworkFilter::default()
    };
    let tagged = NetworkFilter {
        tags: discovery,
        ..NetworkFilter::default()
    };
    let images = ImageFilter::of_ids(texts(&["a.vhd", "b.vhd"]));
    let family = ImageFilter::of_family("acs:alibaba_cloud_linux_3_2104_lts_x64");

    check(
        "DescribeSecurityGroups",
        &describe_security_groups_request(REGION, &groups, ""),
    );
    check(
        "DescribeSecurityGroups by tag",
        &describe_security_groups_request(REGION, &named, ""),
    );
    check(
        "DescribeVSwitches by id",
        &describe_vswitches_request(REGION, &switches, 1),
    );
    check(
        "DescribeVSwitches by tag",
        &describe_vswitches_request(REGION, &tagged, 1),
    );
    check(
        "DescribeImages by id",
        &describe_images_request(REGION, &images, 1),
    );
    check(
        "DescribeImages by family",
        &describe_images_request(REGION, &family, 2),
    );
}

#[test]
fn cluster_calls_are_encoded_as_the_sdk_does() {
    let script = AttachScript {
        arch: "arm64",
        expired: Some(1_798_686_245),
        format_disk: true,
        keep_instance_name: true,
        ..AttachScript::default()
    };

    check(
        "AttachScripts arm64",
        &attach_script_request("c0123", &script).unwrap(),
    );
    check("ClusterDetail", &cluster_detail_request("c0123"));
}
