// Launches the families that you like first, and never those that you dislike. Within a family the cheapest stays first.

#include "kerf_selection.h"

static const char schema[] = {
#embed "config-schema.json"
    , 0};

const kerf_about_t kerf_about = {
    .name = "prefer-family",
    .version = "0.1.0",
    .summary = "ranks instance families by weight and excludes some",
    .config_schema = schema,
    .default_config = "{\"weights\":{},\"exclude\":[]}",
};

static void check_name(const char *family, kerf_errors_t *errors) {
  if (family != NULL && strncmp(family, "ecs.", 4) != 0) {
    kerf_wrong(errors, "", kerf_format("\"%s\" is not a family; write it as ecs.%s", family, family));
  }
}

void kerf_check(const kerf_json_t *config, kerf_errors_t *errors) {
  const kerf_json_t *exclude = kerf_get(config, "exclude");
  kerf_each(weight, kerf_get(config, "weights")) {
    if (kerf_has(exclude, weight->key)) {
      kerf_wrong(errors, kerf_format("/weights/%s", weight->key), "is excluded too; remove it from one of the two");
    }
    check_name(weight->key, errors);
  }
  kerf_each(family, exclude) check_name(kerf_text(family), errors);
}

void kerf_select(const kerf_json_t *config, const kerf_context_t *ctx, const kerf_candidates_t *candidates, kerf_selection_t *out) {
  const kerf_json_t *weights = kerf_get(config, "weights"), *exclude = kerf_get(config, "exclude");
  for (uint32_t i = 0; i < candidates->len; i++) {
    const char *family = kerf_word(&ctx->vocabulary.families, candidates->ptr[i].family);
    const kerf_json_t *weight = kerf_get(weights, family);
    if (kerf_has(exclude, family)) {
      kerf_exclude(out, i, "family %s is excluded", family);
    } else if (weight != NULL) {
      kerf_rank(out, i, kerf_int(weight, 0));
    }
  }
}
