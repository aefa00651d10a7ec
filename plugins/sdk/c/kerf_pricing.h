// Makes a component of a PricingPreference policy in C; see kerf_common.h.
#ifndef KERF_PRICING_H
#define KERF_PRICING_H

#include "bindings/pricing_plugin.h"

typedef pricing_plugin_string_t kerf_string_t;
typedef pricing_plugin_list_string_t kerf_strings_t;
typedef pricing_plugin_list_tuple2_string_string_t kerf_fields_t;
typedef kerf_policy_types_policy_error_t kerf_error_t;
#define kerf_string_dup pricing_plugin_string_dup

#include "kerf_common.h"

typedef kerf_policy_types_pricing_context_t kerf_context_t;
typedef kerf_policy_types_candidate_t kerf_candidate_t;
typedef kerf_policy_types_offering_t kerf_offering_t;
typedef exports_kerf_policy_pricing_preference_list_candidate_t kerf_candidates_t;
typedef exports_kerf_policy_pricing_preference_list_adjustment_t kerf_adjustments_t;

// New prices for some offerings of a whole catalog, by kerf_price; the others keep theirs.
void kerf_adjust(const kerf_json_t *config, const kerf_context_t *ctx, const kerf_candidates_t *candidates, kerf_adjustments_t *out);

// Gives one offering another price; the reason may be NULL.
static inline void kerf_price(kerf_adjustments_t *out, uint32_t candidate, uint32_t offering, uint32_t price_micros, const char *reason) {
  exports_kerf_policy_pricing_preference_adjustment_t *adjustment = KERF_PUSH(out);
  adjustment->candidate = candidate;
  adjustment->offering = offering;
  adjustment->price_micros = price_micros;
  adjustment->reason.is_some = reason != NULL;
  if (reason != NULL) adjustment->reason.val = kerf_copy(reason);
}

void __component_type_object_force_link_pricing_plugin(void) {}

bool exports_kerf_policy_pricing_preference_adjust(kerf_string_t *config, kerf_context_t *ctx, kerf_candidates_t *candidates,
                                                   kerf_adjustments_t *ret, kerf_error_t *err) {
  memset(ret, 0, sizeof *ret);
  const kerf_json_t *parsed = kerf_parse_config(config);
  if (parsed != NULL) kerf_adjust(parsed, ctx, candidates, ret);
  if (kerf_has_failed) *err = kerf_failure;
  return !kerf_has_failed;
}

#endif
