//! Images: by id, by family, by alias or by name.

use crate::actions::images::{ImageFilter, ImageItem};
use crate::error::CloudError;
use crate::provider::class::{Architecture, Image, ImageTerm, ResolveKind};
use crate::provider::resolve::network::{exact, has_tags};
use crate::provider::resolve::{Found, could_not_ask, empty_term, not_found};
use crate::rpc::Client;

const KIND: ResolveKind = ResolveKind::Image;

/// The families behind `AlibabaCloudLinux3`, one per architecture.
const LINUX3_FAMILIES: [&str; 2] = [
    "acs:alibaba_cloud_linux_3_2104_lts_x64",
    "acs:alibaba_cloud_linux_3_2104_lts_arm64",
];
/// How ACK names its container images.
const CONTAINER_OS_NAMES: &str = "ContainerOS*";

pub(super) async fn images(client: &Client, terms: &[ImageTerm]) -> Found<Image> {
    let mut found = Found {
        items: Vec::new(),
        problems: Vec::new(),
    };
    for (index, term) in terms.iter().enumerate() {
        let (leaf, value) = what_is_given(term);
        let field = format!("spec.imageSelectorTerms[{index}].{leaf}");
        let Some(filters) = filters(term) else {
            found.problems.push(empty_term(
                KIND,
                field,
                "an id, imageFamily, alias, name or tags",
            ));
            continue;
        };
        match ask(client, &filters).await {
            Ok(mut items) => {
                // The server's filter is not trusted with tags that may have any value.
                items.retain(|item| has_tags(item.tags(), &term.tags));
                let images = usable(items);
                if images.is_empty() {
                    found.problems.push(not_found(KIND, "image", field, value));
                }
                found.items.extend(images);
            }
            Err(error) if is_missing_image(&error) => {
                found.problems.push(not_found(KIND, "image", field, value));
            }
            Err(error) => found.problems.push(could_not_ask(KIND, field, &error)),
        }
    }
    found
}

fn is_missing_image(error: &CloudError) -> bool {
    use crate::error::{ErrorClass, Missing};
    error.class() == ErrorClass::NotFound(Missing::Image)
}

fn what_is_given(term: &ImageTerm) -> (&'static str, String) {
    let tags = term
        .tags
        .iter()
        .map(|(key, value)| format!("{key}={value}"));
    let tags = tags.collect::<Vec<_>>().join(",");
    let given = [
        ("id", &term.id),
        ("imageFamily", &term.image_family),
        ("alias", &term.alias),
        ("name", &term.name),
        ("tags", &tags),
    ];
    let found = given.into_iter().find(|(_, value)| !value.is_empty());
    found.map_or(("id", String::new()), |(leaf, value)| (leaf, value.clone()))
}

fn filters(term: &ImageTerm) -> Option<Vec<ImageFilter>> {
    let alias = term.alias.split('@').next().unwrap_or("");
    match what_is_given(term) {
        (_, value) if value.is_empty() => None,
        ("id", id) => Some(vec![ImageFilter::of_ids(vec![id])]),
        ("alias", _) if alias.eq_ignore_ascii_case("AlibabaCloudLinux3") => {
            let families = LINUX3_FAMILIES.iter();
            Some(families.map(|it| ImageFilter::of_family(it)).collect())
        }
        ("alias", _) if alias.eq_ignore_ascii_case("ContainerOS") => {
            Some(vec![ImageFilter::of_name(CONTAINER_OS_NAMES)])
        }
        // An alias that we do not know finds nothing, which the condition then says.
        ("alias", _) => Some(Vec::new()),
        _ => Some(vec![ImageFilter {
            ids: Vec::new(),
            family: term.image_family.clone(),
            name: term.name.clone(),
            owner_alias: term.owner_alias.clone(),
            owner_id: term.owner_id.clone(),
            tags: exact(&term.tags),
        }]),
    }
}

async fn ask(client: &Client, filters: &[ImageFilter]) -> Result<Vec<ImageItem>, CloudError> {
    let mut all = Vec::new();
    for filter in filters {
        all.extend(client.describe_images(filter).await?);
    }
    Ok(all)
}

/// Of each architecture the newest; equal times are settled by id.
fn usable(items: Vec<ImageItem>) -> Vec<Image> {
    let mut images: Vec<_> = items.into_iter().filter_map(image).collect();
    images.sort_by(|a, b| {
        let newest_first = b.created_at.cmp(&a.created_at);
        a.architecture
            .cmp(&b.architecture)
            .then(newest_first)
            .then_with(|| a.id.cmp(&b.id))
    });
    images.dedup_by_key(|image| image.architecture);
    images
}

fn image(item: ImageItem) -> Option<Image> {
    let is_usable = matches!(item.status.as_str(), "" | "Available");
    let architecture = Architecture::from_image(&item.architecture)?;
    is_usable.then_some(Image {
        id: item.image_id,
        name: item.image_name,
        architecture,
        created_at: item.creation_time,
        size_gib: item.size,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(id: &str, architecture: &str, created: &str, status: &str) -> ImageItem {
        ImageItem {
            image_id: id.to_owned(),
            architecture: architecture.to_owned(),
            creation_time: created.to_owned(),
            status: status.to_owned(),
            ..ImageItem::default()
        }
    }

    #[test]
    fn the_newest_usable_image_of_each_architecture_is_taken() {
        let images = usable(vec![
            item("old", "x86_64", "2025-01-01T00:00:00Z", "Available"),
            item("new", "x86_64", "2026-01-01T00:00:00Z", "Available"),
            item("newer", "x86_64", "2026-02-01T00:00:00Z", "Creating"),
            item("arm", "arm64", "2024-01-01T00:00:00Z", "Available"),
            item("i386", "i386", "2026-01-01T00:00:00Z", "Available"),
        ]);

        let ids: Vec<_> = images.iter().map(|image| image.id.as_str()).collect();
        assert_eq!(ids, ["new", "arm"]);
    }

    #[test]
    fn an_alias_may_carry_a_version() {
        let term = |alias: &str| ImageTerm {
            alias: alias.to_owned(),
            ..ImageTerm::default()
        };

        assert_eq!(
            filters(&term("AlibabaCloudLinux3@latest")).unwrap().len(),
            2
        );
        assert_eq!(filters(&term("ContainerOS")).unwrap().len(), 1);
        assert_eq!(filters(&term("Windows")).unwrap(), []);
        assert_eq!(filters(&ImageTerm::default()), None);
    }
}
