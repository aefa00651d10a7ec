//! Bindings of the world `selection-plugin`, and the types and the log that the other worlds share with it.

wit_bindgen::generate!({
    path: "../../../../../wit",
    world: "selection-plugin",
    pub_export_macro: true,
    export_macro_name: "export",
    default_bindings_module: "kerf_policy_bindings_selection",
});
