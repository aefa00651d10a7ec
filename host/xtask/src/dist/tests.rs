//! All that is shipped but the program itself, for which this very test stands in where a static one is not needed.

use std::collections::BTreeMap;

use serde_json::Value;

use super::*;

const TIME: i64 = 1_700_000_000;

fn unpacked(archive: &[u8]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("archive");
    std::fs::write(&file, archive).unwrap();
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--auto-compress", "--file"])
        .arg(&file);
    process::run(tar.arg("--directory").arg(folder.path())).unwrap();
    folder
}

fn charts() -> BTreeMap<String, Vec<u8>> {
    chart::files(TIME).unwrap().into_iter().collect()
}

#[test]
fn the_same_sources_give_the_same_bytes() {
    let all = || {
        let mut files = chart::files(TIME).unwrap();
        files.extend(sdks(TIME).unwrap());
        files.push(("kerf.yaml".to_owned(), manifest::whole().unwrap()));
        files.push((
            "kerf-crds.yaml".to_owned(),
            manifest::definitions().unwrap(),
        ));
        files
    };

    assert!(all() == all(), "two runs differ");
    assert!(all().len() > 8);
}

#[test]
fn a_package_is_a_chart_that_passes_the_strict_lint_and_the_index_has_its_digest() {
    let files = charts();
    let index: Value = serde_json::from_slice(&files["index.yaml"]).unwrap();
    for name in ["kerf", "kerf-crd"] {
        let file = format!("{name}-{VERSION}.tgz");
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(&file), &files[&file]).unwrap();
        let mut command = chart_e2e::helm::command().unwrap();
        command
            .args(["lint", "--strict"])
            .arg(folder.path().join(&file));
        command.args(["--set", "settings.clusterID=c1,settings.region=cn-hangzhou"]);
        if name == "kerf-crd" {
            command = chart_e2e::helm::command().unwrap();
            command
                .args(["lint", "--strict"])
                .arg(folder.path().join(&file));
        }
        let output = command.output().unwrap();

        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stdout)
        );
        let entry = &index["entries"][name][0];
        assert_eq!(entry["digest"], hex_digest(&files[&file]));
        assert_eq!(entry["urls"][0], file);
        assert_eq!(entry["version"], VERSION);
    }
}

#[test]
fn the_layout_of_a_chart_holds_the_package_by_its_digest() {
    let files = charts();
    let folder = unpacked(&files[&format!("kerf-chart-{VERSION}.oci.tar")]);
    let read = |path: &str| std::fs::read(folder.path().join(path)).unwrap();
    let blob = |descriptor: &Value| {
        let digest = descriptor["digest"].as_str().unwrap();
        let bytes = read(&format!("blobs/{}", digest.replace(':', "/")));
        assert_eq!(digest, format!("sha256:{}", hex_digest(&bytes)));
        assert_eq!(descriptor["size"], bytes.len());
        bytes
    };

    let index: Value = serde_json::from_slice(&read("index.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&blob(&index["manifests"][0])).unwrap();
    let config: Value = serde_json::from_slice(&blob(&manifest["config"])).unwrap();
    assert_eq!(config["name"], "kerf");
    assert_eq!(
        blob(&manifest["layers"][0]),
        files[&format!("kerf-{VERSION}.tgz")]
    );
    assert_eq!(read("oci-layout"), br#"{"imageLayoutVersion":"1.0.0"}"#);
}

#[test]
fn one_file_has_the_namespace_first_the_definitions_and_no_cluster_of_anybody() {
    let text = String::from_utf8(manifest::whole().unwrap()).unwrap();
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let objects: Vec<Value> = objects.into_iter().filter(|it| !it.is_null()).collect();

    assert_eq!(objects[0]["kind"], "Namespace");
    let of_kind = |kind: &str| objects.iter().filter(|it| it["kind"] == kind).count();
    assert_eq!(of_kind("CustomResourceDefinition"), 5);
    assert_eq!(of_kind("Deployment"), 1);
    let deployment = objects
        .iter()
        .find(|it| it["kind"] == "Deployment")
        .unwrap();
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let settings = container["env"].as_array().unwrap().iter();
    let from_map: Vec<_> = settings
        .filter_map(|it| it.pointer("/valueFrom/configMapKeyRef/key"))
        .collect();
    assert_eq!(from_map[..2], ["CLUSTER_ID", "ALIBABA_CLOUD_REGION"]);
    assert_eq!(container["image"], format!("kerf/kerf:{VERSION}"));
    // Client-side apply keeps the object in an annotation, which has a limit of 256 KiB.
    for object in &objects {
        assert!(
            object.to_string().len() < 200_000,
            "{}",
            object["metadata"]["name"]
        );
    }
}

#[test]
fn every_version_is_the_workspaces_and_the_notes_are_the_changelogs() {
    for name in ["kerf", "kerf-crd"] {
        let path = workspace::root().join(format!("charts/{name}/Chart.yaml"));
        let chart: Value = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(
            [&chart["version"], &chart["appVersion"]],
            [VERSION, VERSION]
        );
    }
    let notes = String::from_utf8(notes().unwrap()).unwrap();
    assert!(
        notes.starts_with("## [") && notes.matches("\n## [").count() == 0,
        "{notes}"
    );
}

/// Without the program, which only the archives hold: what is installed runs as in `chart-e2e`.
#[test]
fn a_packaged_chart_and_one_file_each_bring_up_a_controller_that_provisions() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in charts() {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    std::fs::write(folder.path().join("kerf.yaml"), manifest::whole().unwrap()).unwrap();

    chart_e2e::packaged::run(folder.path()).unwrap();
}
