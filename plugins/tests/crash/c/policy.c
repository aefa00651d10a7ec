// Fails in the way that its configuration names, so that tests see what becomes of a panic.

#include "kerf_selection.h"

const kerf_about_t kerf_about = {.name = "crash", .version = "0.1.0"};

void kerf_check(const kerf_json_t *config, kerf_errors_t *errors) {}

void kerf_select(const kerf_json_t *config, const kerf_context_t *ctx, const kerf_candidates_t *candidates, kerf_selection_t *out) {
  const char *how = kerf_text(kerf_get(config, "how"));
  if (how == NULL || candidates->len == 0) return;
  kerf_log(kerf_format("about to fail how=%s", how));
  if (strcmp(how, "config") == 0) {
    kerf_fail(KERF_INVALID_CONFIG, "deliberate");
  } else if (strcmp(how, "unsupported") == 0) {
    kerf_fail(KERF_UNSUPPORTED, "deliberate");
  } else {
    kerf_panic("deliberate");
  }
}
