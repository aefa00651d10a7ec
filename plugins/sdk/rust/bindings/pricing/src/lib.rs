//! Bindings of the world `pricing-plugin`. A crate of its own, because wit-bindgen's macros of two worlds have equal names.

wit_bindgen::generate!({
    path: "../../../../../wit",
    world: "pricing-plugin",
    with: {
        "kerf:policy/types@0.1.0": kerf_policy_bindings_selection::kerf::policy::types,
        "kerf:policy/log@0.1.0": kerf_policy_bindings_selection::kerf::policy::log,
    },
    pub_export_macro: true,
    export_macro_name: "export",
    default_bindings_module: "kerf_policy_bindings_pricing",
});
