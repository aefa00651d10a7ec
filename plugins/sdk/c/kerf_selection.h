// Makes a component of an InstanceSelection policy in C; see kerf_common.h.
#ifndef KERF_SELECTION_H
#define KERF_SELECTION_H

#include "bindings/selection_plugin.h"

typedef selection_plugin_string_t kerf_string_t;
typedef selection_plugin_list_string_t kerf_strings_t;
typedef selection_plugin_list_tuple2_string_string_t kerf_fields_t;
typedef kerf_policy_types_policy_error_t kerf_error_t;
#define kerf_string_dup selection_plugin_string_dup

#include "kerf_common.h"

typedef kerf_policy_types_context_t kerf_context_t;
typedef kerf_policy_types_candidate_t kerf_candidate_t;
typedef exports_kerf_policy_instance_selection_list_candidate_t kerf_candidates_t;
typedef exports_kerf_policy_instance_selection_selection_t kerf_selection_t;

// The decision, by kerf_rank and kerf_exclude. The candidates all fit the pods; the first is what would be launched
// without a policy.
void kerf_select(const kerf_json_t *config, const kerf_context_t *ctx, const kerf_candidates_t *candidates, kerf_selection_t *out);

// A higher score is tried earlier.
static inline void kerf_rank(kerf_selection_t *out, uint32_t candidate, int32_t score) {
  exports_kerf_policy_instance_selection_ranked_t *ranked = KERF_PUSH(&out->ranked);
  ranked->candidate = candidate;
  ranked->score = score;
}

// Takes a candidate with all of its offerings out; users see the reason.
__attribute__((format(printf, 3, 4))) static inline void kerf_exclude(kerf_selection_t *out, uint32_t candidate, const char *reason, ...) {
  va_list args;
  va_start(args, reason);
  exports_kerf_policy_instance_selection_excluded_t *excluded = KERF_PUSH(&out->excluded);
  excluded->candidate = candidate;
  excluded->reason = kerf_copy(kerf_vformat(reason, args));
  va_end(args);
}

void __component_type_object_force_link_selection_plugin(void) {}

bool exports_kerf_policy_instance_selection_select(kerf_string_t *config, kerf_context_t *ctx, kerf_candidates_t *candidates,
                                                   kerf_selection_t *ret, kerf_error_t *err) {
  memset(ret, 0, sizeof *ret);
  const kerf_json_t *parsed = kerf_parse_config(config);
  if (parsed != NULL) kerf_select(parsed, ctx, candidates, ret);
  if (kerf_has_failed) *err = kerf_failure;
  return !kerf_has_failed;
}

#endif
