// Orders by the price that you really pay: takes a discount per family off, or adds a cost that the bill does not show.

#include "kerf_pricing.h"

static const char schema[] = {
#embed "config-schema.json"
    , 0};

const kerf_about_t kerf_about = {
    .name = "family-discount",
    .version = "0.1.0",
    .summary = "takes a discount per instance family off the price that ordering uses",
    .config_schema = schema,
    .default_config = "{\"percentOff\":{}}",
};

void kerf_check(const kerf_json_t *config, kerf_errors_t *errors) {}

static uint32_t less(uint32_t price, int32_t percent) {
  int64_t wanted = (int64_t)price * (100 - percent) / 100;
  if (wanted < 0) return 0;
  return wanted < KERF_UNKNOWN_PRICE ? (uint32_t)wanted : KERF_UNKNOWN_PRICE - 1;
}

void kerf_adjust(const kerf_json_t *config, const kerf_context_t *ctx, const kerf_candidates_t *candidates, kerf_adjustments_t *out) {
  const kerf_json_t *percent_off = kerf_get(config, "percentOff");
  for (uint32_t i = 0; i < candidates->len; i++) {
    const kerf_candidate_t *it = &candidates->ptr[i];
    const char *family = kerf_word(&ctx->vocabulary.families, it->family);
    const kerf_json_t *found = kerf_get(percent_off, family);
    if (found == NULL) continue;
    int32_t percent = kerf_int(found, 0);
    for (uint32_t j = 0; j < it->offerings.len; j++) {
      uint32_t price = it->offerings.ptr[j].price_micros;
      if (price == KERF_UNKNOWN_PRICE) continue;
      kerf_price(out, i, j, less(price, percent), kerf_format("%d %% off %s", (int)percent, family));
    }
  }
}
