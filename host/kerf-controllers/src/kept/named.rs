//! An object of which only the name is known: what kube's queue of work needs.

use std::borrow::Cow;
use std::fmt::{self, Debug, Formatter};
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::runtime::watcher::Event;
use serde::Deserialize;

/// The name of an object, as an object of its kind.
#[derive(Deserialize)]
#[serde(bound = "")]
pub struct Named<K> {
    metadata: ObjectMeta,
    #[serde(skip)]
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Named<K> {
    fn clone(&self) -> Self {
        Self {
            metadata: self.metadata.clone(),
            kind: PhantomData,
        }
    }
}

impl<K> Debug for Named<K> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Named").field(&self.metadata.name).finish()
    }
}

/// The same event of the name.
pub(super) fn event<K: Resource>(event: &Event<K>) -> Event<Named<K>> {
    match event {
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
        Event::InitApply(object) => Event::InitApply(Named::of(object)),
        Event::Apply(object) => Event::Apply(Named::of(object)),
        Event::Delete(object) => Event::Delete(Named::of(object)),
    }
}

impl<K: Resource> Named<K> {
    fn of(object: &K) -> Self {
        let metadata = ObjectMeta {
            name: object.meta().name.clone(),
            ..ObjectMeta::default()
        };
        Self {
            metadata,
            kind: PhantomData,
        }
    }
}

impl<K: Resource> Resource for Named<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(dynamic)
    }

    fn group(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::group(dynamic)
    }

    fn version(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::version(dynamic)
    }

    fn plural(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(dynamic)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
