//! Kinds of constraint that only the objects themselves show: how a pod's requests come about, and volumes that do not
//! exist yet.

use serde_json::{Value, json};

use super::case::{Case, name, namespace};
use super::draw::{Draw, ZONES};
use super::manifest;

/// How the containers of a group of pods differ from one plain container.
#[derive(Debug, Default)]
struct Dress {
    init: Option<(i64, i64)>,
    sidecar: Option<(i64, i64)>,
    is_sidecar_first: bool,
    sidecar_port: Option<i64>,
    second: Option<(i64, i64)>,
    pod_level: Option<(i64, i64)>,
    has_overhead: bool,
}

impl Draw {
    /// Gives each group of pending pods what it has besides.
    pub(super) fn dress(&mut self, case: &mut Case) {
        let class = format!("case-{}-class", self.seed);
        let mut is_class_used = false;
        let mut made = Vec::new();
        for group in groups(case) {
            let dress = self.draw_dress();
            let own_class = self.late_kind("volume of a storage class", 12);
            let shared = self.late_kind("volume of several pods", 8);
            is_class_used |= own_class;
            for (idx, place) in group.iter().enumerate() {
                let pod = &mut case.objects[*place];
                wear(pod, &dress);
                if own_class {
                    let claim = format!("{}-new", name(pod));
                    made.push(manifest::volume_claim(namespace(pod), &claim, &class));
                    mount(pod, "new", &claim);
                }
                if shared {
                    let claim = format!("{}-shared", group_of(pod));
                    if idx == 0 {
                        let zones = [self.late.pick(&ZONES)];
                        made.extend(manifest::volume_in_zones(namespace(pod), &claim, &zones));
                    }
                    mount(pod, "shared", &claim);
                }
            }
        }
        if is_class_used {
            let zones = self.late.some(&ZONES);
            made.push(manifest::storage_class(&class, &zones));
        }
        case.objects.extend(made);
        self.resize(case);
    }

    fn draw_dress(&mut self) -> Dress {
        let mut dress = Dress::default();
        if self.late_kind("pod-level resources", 10) {
            dress.pod_level = Some((self.late.pick(&[100, 900]), self.late.pick(&[64, 700])));
        } else if self.late_kind("init container", 12) {
            dress.init = Some((
                self.late.pick(&[100, 2100, 6000]),
                self.late.pick(&[64, 5000]),
            ));
        }
        if self.late_kind("sidecar", 12) {
            dress.sidecar = Some((self.late.pick(&[50, 400]), self.late.pick(&[32, 600])));
            dress.is_sidecar_first = self.late.percent(50);
            if self.late_kind("host port of a sidecar", 45) {
                dress.sidecar_port = Some(self.late.pick(&[8080, 9090]));
            }
        }
        if self.late_kind("second container", 8) {
            dress.second = Some((self.late.pick(&[50, 700]), self.late.pick(&[32, 900])));
        }
        dress.has_overhead = self.late_kind("overhead of a runtime", 10);
        dress
    }

    /// Bound pods whose kubelet has given them more than they ask for.
    fn resize(&mut self, case: &mut Case) {
        for pod in &mut case.objects {
            let is_bound = pod["kind"] == "Pod" && pod["spec"]["nodeName"].is_string();
            if is_bound && self.late_kind("pod that is being resized", 20) {
                let given = resources((self.late.pick(&[600, 1400]), 300));
                pod["status"] = json!({"containerStatuses": [{
                    "name": "main", "image": "example.com/none", "imageID": "none",
                    "ready": true, "restartCount": 0,
                    "state": {"running": {}},
                    "resources": {"requests": given}, "allocatedResources": given,
                }]});
            }
        }
    }
}

/// The places of pending pods in the objects, by group.
fn groups(case: &Case) -> Vec<Vec<usize>> {
    let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
    for (place, object) in case.objects.iter().enumerate() {
        if object["kind"] != "Pod" || object["spec"]["nodeName"].is_string() {
            continue;
        }
        let group = group_of(object);
        match groups.last_mut().filter(|(last, _)| *last == group) {
            Some((_, places)) => places.push(place),
            None => groups.push((group, vec![place])),
        }
    }
    groups.into_iter().map(|(_, places)| places).collect()
}

fn group_of(pod: &Value) -> String {
    let (group, _) = name(pod).rsplit_once('-').unwrap_or_default();
    group.to_owned()
}

fn wear(pod: &mut Value, dress: &Dress) {
    let spec = &mut pod["spec"];
    let mut init = Vec::new();
    init.extend(dress.init.map(|amounts| container("init", amounts)));
    if let Some(amounts) = dress.sidecar {
        let mut sidecar = container("sidecar", amounts);
        sidecar["restartPolicy"] = json!("Always");
        if let Some(port) = dress.sidecar_port {
            sidecar["ports"] =
                json!([{"containerPort": port, "hostPort": port, "protocol": "TCP"}]);
        }
        let place = if dress.is_sidecar_first {
            0
        } else {
            init.len()
        };
        init.insert(place, sidecar);
    }
    if !init.is_empty() {
        spec["initContainers"] = json!(init);
    }
    if let (Some(amounts), Some(containers)) = (dress.second, spec["containers"].as_array_mut()) {
        containers.push(container("second", amounts));
    }
    if dress.has_overhead {
        spec["runtimeClassName"] = json!(manifest::RUNTIME);
        spec["overhead"] = manifest::overhead();
    }
    if let Some((more_cpu, more_memory)) = dress.pod_level {
        // The API server wants no less than the containers ask for together.
        let (cpu, memory) = sum_of_containers(spec);
        spec["resources"]["requests"] = resources((cpu + more_cpu, memory + more_memory));
    }
}

fn container(name: &str, amounts: (i64, i64)) -> Value {
    json!({"name": name, "image": "example.com/none", "resources": {"requests": resources(amounts)}})
}

/// Of thousandths of a CPU and mebibytes.
fn resources((cpu, memory): (i64, i64)) -> Value {
    json!({"cpu": format!("{cpu}m"), "memory": format!("{memory}Mi")})
}

/// The reverse of [`resources`], over all containers and sidecars.
fn sum_of_containers(spec: &Value) -> (i64, i64) {
    let lists = [&spec["containers"], &spec["initContainers"]];
    let containers = lists.into_iter().filter_map(Value::as_array).flatten();
    containers.fold((0, 0), |(cpu, memory), container| {
        let requests = &container["resources"]["requests"];
        let amount = |name: &str| {
            let text = requests[name].as_str().unwrap_or("0");
            let quantity = kerf_core::quantity::Quantity::parse(text).unwrap_or_default();
            kerf_core::resources::amount_of(name, quantity)
        };
        (cpu + amount("cpu"), memory + (amount("memory") >> 20))
    })
}

fn mount(pod: &mut Value, volume: &str, claim: &str) {
    let volume = json!({"name": volume, "persistentVolumeClaim": {"claimName": claim}});
    match pod["spec"]["volumes"].as_array_mut() {
        Some(volumes) => volumes.push(volume),
        None => pod["spec"]["volumes"] = json!([volume]),
    }
}
