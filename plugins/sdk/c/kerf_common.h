// What the three hooks share. Include kerf_selection.h, kerf_pricing.h or kerf_bootstrap.h instead, in one file only:
// they define the functions that the component exports, and those call yours:
//
//   const kerf_about_t kerf_about = {...};
//   void kerf_check(const kerf_json_t *config, kerf_errors_t *errors);   // what is wrong although the schema accepts it
//
// and one of kerf_select, kerf_adjust and kerf_render. Memory is never freed: an instance serves one call.
#ifndef KERF_COMMON_H
#define KERF_COMMON_H

#include <stdarg.h>
#include <stdio.h>

#include "kerf_json.h"

// The price of an offering that nobody knows.
#define KERF_UNKNOWN_PRICE UINT32_MAX

// What a policy says about itself. NULL is as good as empty.
typedef struct {
  const char *name, *version, *summary;
  const char *config_schema;  // a JSON Schema (2020-12)
  const char *default_config; // JSON
  uint32_t time_step_s;       // how often the answer may change with ctx->as_of_unix_s
} kerf_about_t;

typedef exports_kerf_policy_lifecycle_list_config_error_t kerf_errors_t;

extern const kerf_about_t kerf_about;
void kerf_check(const kerf_json_t *config, kerf_errors_t *errors);

// Ends the call; the message reaches the status.
#define kerf_panic(...) kerf_die(__FILE_NAME__, __LINE__, __VA_ARGS__)

// Text in memory of its own.
__attribute__((format(printf, 1, 2))) static inline char *kerf_format(const char *format, ...);

static inline kerf_string_t kerf_copy(const char *text) {
  kerf_string_t copy;
  kerf_string_dup(&copy, text != NULL ? text : "");
  return copy;
}

// log("message"): a line in the controller's log, with the policy's name.
static inline void kerf_log_as(kerf_policy_log_level_t level, const char *text) {
  kerf_string_t message = {(uint8_t *)text, strlen(text)};
  kerf_fields_t fields = {0};
  kerf_policy_log_emit(level, &message, &fields);
}

static inline void kerf_log(const char *text) { kerf_log_as(KERF_POLICY_LOG_LEVEL_INFO, text); }

__attribute__((noreturn, format(printf, 3, 4))) static inline void kerf_die(const char *file, int line, const char *format, ...) {
  char text[400];
  int len = snprintf(text, sizeof text, "%s:%d: ", file, line);
  va_list args;
  va_start(args, format);
  vsnprintf(text + len, sizeof text - (size_t)len, format, args);
  va_end(args);
  kerf_log_as(KERF_POLICY_LOG_LEVEL_ERROR, text);
  __builtin_trap();
}

static inline char *kerf_vformat(const char *format, va_list args) {
  va_list again;
  va_copy(again, args);
  int len = vsnprintf(NULL, 0, format, again);
  va_end(again);
  char *text = len < 0 ? NULL : malloc((size_t)len + 1);
  if (text == NULL) kerf_panic("out of memory");
  vsnprintf(text, (size_t)len + 1, format, args);
  return text;
}

static inline char *kerf_format(const char *format, ...) {
  va_list args;
  va_start(args, format);
  char *text = kerf_vformat(format, args);
  va_end(args);
  return text;
}

// Room for one more element of a list: {ptr, len}.
#define KERF_PUSH(list) (kerf_grow((void **)&(list)->ptr, (list)->len, sizeof *(list)->ptr), &(list)->ptr[(list)->len++])

static inline void kerf_grow(void **items, size_t len, size_t size) {
  // Doubles at each power of two.
  if ((len & (len - 1)) != 0) return;
  void *more = realloc(*items, (len == 0 ? 1 : len * 2) * size);
  if (more == NULL) kerf_panic("out of memory");
  memset((char *)more + len * size, 0, (len == 0 ? 1 : len) * size);
  *items = more;
}

// One more thing that is wrong with a configuration; the path is a JSON Pointer, "" for the whole.
static inline void kerf_wrong(kerf_errors_t *errors, const char *path, const char *message) {
  exports_kerf_policy_lifecycle_config_error_t *error = KERF_PUSH(errors);
  error->path = kerf_copy(path);
  error->message = kerf_copy(message);
}

// What the policy failed with, for the rest of the call; set by kerf_fail.
static kerf_error_t kerf_failure;
static bool kerf_has_failed;

// Voids the answer: kerf_fail(KERF_INVALID_CONFIG, "...") and then return.
enum { KERF_INVALID_CONFIG, KERF_UNSUPPORTED, KERF_INTERNAL };

static inline void kerf_fail(uint8_t kind, const char *message) {
  kerf_failure.tag = kind;
  kerf_failure.val.internal = kerf_copy(message);
  kerf_has_failed = true;
}

static inline const kerf_json_t *kerf_parse_config(const kerf_string_t *config) {
  const kerf_json_t *parsed = kerf_parse((const char *)config->ptr, config->len);
  if (parsed == NULL) kerf_fail(KERF_INVALID_CONFIG, "is not JSON, or nested too deeply");
  return parsed;
}

// The name behind an index into one of the tables of a vocabulary; empty when the index is none.
static inline const char *kerf_word(const kerf_strings_t *table, uint16_t index) {
  if (index >= table->len) return "";
  return kerf_format("%.*s", (int)table->ptr[index].len, (const char *)table->ptr[index].ptr);
}

void exports_kerf_policy_lifecycle_describe(exports_kerf_policy_lifecycle_metadata_t *ret) {
  ret->name = kerf_copy(kerf_about.name);
  ret->version = kerf_copy(kerf_about.version);
  ret->summary = kerf_copy(kerf_about.summary);
  ret->config_schema = kerf_copy(kerf_about.config_schema);
  ret->default_config = kerf_copy(kerf_about.default_config);
  ret->time_step_s = kerf_about.time_step_s;
}

bool exports_kerf_policy_lifecycle_validate_config(kerf_string_t *config, kerf_errors_t *errors) {
  memset(errors, 0, sizeof *errors);
  const kerf_json_t *parsed = kerf_parse_config(config);
  if (parsed == NULL) {
    kerf_wrong(errors, "", "is not JSON, or nested too deeply");
    return false;
  }
  kerf_check(parsed, errors);
  return errors->len == 0;
}

#endif
