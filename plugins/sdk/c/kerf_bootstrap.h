// Makes a component of a BootstrapUserData policy in C; see kerf_common.h.
#ifndef KERF_BOOTSTRAP_H
#define KERF_BOOTSTRAP_H

#include "bindings/bootstrap_plugin.h"

typedef bootstrap_plugin_string_t kerf_string_t;
typedef bootstrap_plugin_list_string_t kerf_strings_t;
typedef bootstrap_plugin_list_tuple2_string_string_t kerf_fields_t;
typedef kerf_policy_types_policy_error_t kerf_error_t;
#define kerf_string_dup bootstrap_plugin_string_dup

#include "kerf_common.h"

typedef exports_kerf_policy_bootstrap_userdata_node_t kerf_node_t;
typedef exports_kerf_policy_bootstrap_userdata_part_t kerf_part_t;
typedef exports_kerf_policy_bootstrap_userdata_list_part_t kerf_parts_t;

// The parts of the user data, from those so far: push all of `parts` that shall stay, and yours. Those that join the node
// must stay as they are, in their order.
void kerf_render(const kerf_json_t *config, const kerf_node_t *node, const kerf_parts_t *parts, kerf_parts_t *out);

// A part that root runs when the machine boots.
static inline void kerf_script(kerf_parts_t *out, const char *body) {
  kerf_part_t *part = KERF_PUSH(out);
  part->content_type = kerf_copy("text/x-shellscript");
  part->body = kerf_copy(body);
}

// All of the parts so far, as they are.
static inline void kerf_keep(kerf_parts_t *out, const kerf_parts_t *parts) {
  for (size_t i = 0; i < parts->len; i++) *KERF_PUSH(out) = parts->ptr[i];
}

void __component_type_object_force_link_bootstrap_plugin(void) {}

bool exports_kerf_policy_bootstrap_userdata_render(kerf_string_t *config, kerf_node_t *node, kerf_parts_t *parts,
                                                   kerf_parts_t *ret, kerf_error_t *err) {
  memset(ret, 0, sizeof *ret);
  const kerf_json_t *parsed = kerf_parse_config(config);
  if (parsed != NULL) kerf_render(parsed, node, parts, ret);
  if (kerf_has_failed) *err = kerf_failure;
  return !kerf_has_failed;
}

#endif
