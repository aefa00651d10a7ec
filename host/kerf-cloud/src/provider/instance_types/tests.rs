//! Which types can be nodes of a class, and what the others say.

use kerf_core::labels;
use kerf_core::price::Price;

use super::*;
use crate::provider::class::{Architecture, Image, NodeClassSpec};

fn facts(name: &str, architecture: Architecture, enis: u32, ips_per_eni: u32) -> TypeFacts {
    TypeFacts {
        architecture,
        enis,
        ips_per_eni,
        ..TypeFacts::plain(name)
    }
}

fn class_with(images: &[Architecture]) -> ResolvedNodeClass {
    let image = |architecture: &Architecture| Image {
        id: format!("image-{architecture}"),
        name: String::new(),
        architecture: *architecture,
        created_at: String::new(),
        size_gib: 20,
    };
    let mut spec = NodeClassSpec::default();
    spec.system_disk.size_gib = 40;
    ResolvedNodeClass {
        spec,
        cluster_id: String::new(),
        vswitches: Vec::new(),
        security_groups: Vec::new(),
        images: images.iter().map(image).collect(),
        key_pair_name: String::new(),
        private_pools: Vec::new(),
        warnings: Vec::new(),
    }
}

fn as_node_of(class: &ResolvedNodeClass, facts: &TypeFacts) -> InstanceType {
    let config = ProviderConfig::new("cn-hangzhou", "c-1");
    let offering = Offering::new("cn-hangzhou-h", CapacityType::OnDemand, Price::UNKNOWN);
    assemble(facts, class, CniMode::TerwayShared, &config, vec![offering]).unwrap()
}

fn complaint(it: &InstanceType) -> Option<&str> {
    it.offerings[0].unavailable.as_deref()
}

#[test]
fn f79_a_type_without_a_matching_image_is_not_offered_and_says_so() {
    let class = class_with(&[Architecture::Arm64]);

    let amd64 = as_node_of(&class, &facts("ecs.g7.xlarge", Architecture::Amd64, 4, 15));
    let arm64 = as_node_of(&class, &facts("ecs.c8y.xlarge", Architecture::Arm64, 4, 15));

    assert_eq!(
        complaint(&amd64),
        Some("the ECSNodeClass has no image for amd64")
    );
    assert_eq!(complaint(&arm64), None);
}

#[test]
fn f23_each_architecture_has_its_label_and_its_image() {
    let class = class_with(&[Architecture::Amd64, Architecture::Arm64]);

    for architecture in [Architecture::Amd64, Architecture::Arm64] {
        let it = as_node_of(&class, &facts("ecs.c8y.xlarge", architecture, 4, 15));

        let label = |key| it.requirements.on(key).unwrap().single_value().unwrap();
        assert_eq!(label(labels::ARCH), architecture.as_str());
        assert_eq!(label(labels::OS), "linux");
        let image = class.image_for(architecture).unwrap();
        assert_eq!(image.id, format!("image-{architecture}"));
    }
}

#[test]
fn f38_a_type_with_too_few_addresses_is_not_offered_and_says_so() {
    let class = class_with(&[Architecture::Amd64]);

    let small = as_node_of(
        &class,
        &facts("ecs.t6-c1m1.large", Architecture::Amd64, 2, 2),
    );

    assert_eq!(
        complaint(&small),
        Some("2 pod addresses, and Terway wants more than 11")
    );
}

#[test]
fn a_disk_that_is_smaller_than_the_image_is_the_reason_of_every_type() {
    let mut class = class_with(&[Architecture::Amd64]);
    class.spec.system_disk.size_gib = 10;

    let it = as_node_of(&class, &facts("ecs.g7.xlarge", Architecture::Amd64, 4, 15));

    assert_eq!(
        complaint(&it),
        Some("the system disk of 10 GiB is smaller than its image of 20 GiB")
    );
}
