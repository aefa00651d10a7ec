// Reads JSON into a tree. Small on purpose: numbers are 32-bit integers and 64-bit floats, depth is limited, and what is
// read lives as long as the instance, which is one call.
#ifndef KERF_JSON_H
#define KERF_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef enum { KERF_NULL, KERF_BOOL, KERF_NUMBER, KERF_STRING, KERF_ARRAY, KERF_OBJECT } kerf_json_kind_t;

typedef struct kerf_json_t {
  kerf_json_kind_t kind;
  const char *key;           // of a member of an object
  const char *text;          // KERF_STRING, with a zero at its end
  double number;             // KERF_NUMBER; 0 or 1 for KERF_BOOL
  struct kerf_json_t *first; // KERF_ARRAY and KERF_OBJECT
  struct kerf_json_t *next;  // beside it in its array or object
} kerf_json_t;

// Walks over the members of an object or the elements of an array; also of nothing.
#define kerf_each(it, parent) \
  for (const kerf_json_t *it = (parent) != NULL ? (parent)->first : NULL; it != NULL; it = it->next)

// The member of an object, or NULL.
static inline const kerf_json_t *kerf_get(const kerf_json_t *object, const char *key) {
  kerf_each(it, object) {
    if (it->key != NULL && strcmp(it->key, key) == 0) return it;
  }
  return NULL;
}

// The text of a string; NULL for anything else.
static inline const char *kerf_text(const kerf_json_t *value) {
  return value != NULL && value->kind == KERF_STRING ? value->text : NULL;
}

// A number as an integer, at most as large as one can be; `otherwise` for anything else.
static inline int32_t kerf_int(const kerf_json_t *value, int32_t otherwise) {
  if (value == NULL || value->kind != KERF_NUMBER) return otherwise;
  if (value->number >= INT32_MAX) return INT32_MAX;
  return value->number <= INT32_MIN ? INT32_MIN : (int32_t)value->number;
}

// Whether an array of strings has this one.
static inline bool kerf_has(const kerf_json_t *array, const char *text) {
  kerf_each(it, array) {
    if (kerf_text(it) != NULL && strcmp(kerf_text(it), text) == 0) return true;
  }
  return false;
}

enum { KERF_JSON_DEPTH_MAX = 64 };

typedef struct {
  const char *at, *end;
} kerf_reader_t;

static inline void kerf_skip(kerf_reader_t *in) {
  while (in->at < in->end && (*in->at == ' ' || *in->at == '\t' || *in->at == '\n' || *in->at == '\r')) in->at++;
}

static inline bool kerf_take(kerf_reader_t *in, const char *word) {
  size_t len = strlen(word);
  if ((size_t)(in->end - in->at) < len || memcmp(in->at, word, len) != 0) return false;
  in->at += len;
  return true;
}

static inline bool kerf_hex4(kerf_reader_t *in, uint32_t *code) {
  *code = 0;
  for (int i = 0; i < 4; i++, in->at++) {
    if (in->at == in->end) return false;
    char c = *in->at;
    int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0) return false;
    *code = *code * 16 + (uint32_t)digit;
  }
  return true;
}

static inline char *kerf_utf8(char *out, uint32_t code) {
  if (code < 0x80) {
    *out++ = (char)code;
  } else if (code < 0x800) {
    *out++ = (char)(0xc0 | code >> 6);
    *out++ = (char)(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    *out++ = (char)(0xe0 | code >> 12);
    *out++ = (char)(0x80 | (code >> 6 & 0x3f));
    *out++ = (char)(0x80 | (code & 0x3f));
  } else {
    *out++ = (char)(0xf0 | code >> 18);
    *out++ = (char)(0x80 | (code >> 12 & 0x3f));
    *out++ = (char)(0x80 | (code >> 6 & 0x3f));
    *out++ = (char)(0x80 | (code & 0x3f));
  }
  return out;
}

// The rest of an escape after its backslash.
static inline bool kerf_escape(kerf_reader_t *in, char **out) {
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  if (in->at == in->end) return false;
  char c = *in->at++;
  const char *found = c != 0 ? strchr(from, c) : NULL;
  if (found != NULL) {
    *(*out)++ = to[found - from];
    return true;
  }
  uint32_t code, low;
  if (c != 'u' || !kerf_hex4(in, &code)) return false;
  if (code >= 0xd800 && code < 0xdc00) {
    if (!kerf_take(in, "\\u") || !kerf_hex4(in, &low) || low < 0xdc00 || low > 0xdfff) return false;
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  } else if (code >= 0xdc00 && code <= 0xdfff) {
    return false;
  }
  *out = kerf_utf8(*out, code);
  return true;
}

static inline const char *kerf_read_string(kerf_reader_t *in) {
  if (!kerf_take(in, "\"")) return NULL;
  // No escape is shorter than what it stands for.
  char *text = malloc((size_t)(in->end - in->at) + 1), *out = text;
  if (text == NULL) return NULL;
  while (in->at < in->end && *in->at != '"') {
    if ((unsigned char)*in->at < 0x20) return NULL;
    if (*in->at != '\\') {
      *out++ = *in->at++;
      continue;
    }
    in->at++;
    if (!kerf_escape(in, &out)) return NULL;
  }
  if (!kerf_take(in, "\"")) return NULL;
  *out = 0;
  return text;
}

static kerf_json_t *kerf_read(kerf_reader_t *in, int depth);

// The members after the opening bracket.
static inline bool kerf_read_members(kerf_reader_t *in, kerf_json_t *parent, const char *close, int depth) {
  kerf_json_t **last = &parent->first;
  kerf_skip(in);
  if (kerf_take(in, close)) return true;
  for (;;) {
    const char *key = NULL;
    if (parent->kind == KERF_OBJECT) {
      kerf_skip(in);
      if ((key = kerf_read_string(in)) == NULL) return false;
      kerf_skip(in);
      if (!kerf_take(in, ":")) return false;
    }
    kerf_json_t *value = kerf_read(in, depth + 1);
    if (value == NULL) return false;
    value->key = key;
    *last = value;
    last = &value->next;
    kerf_skip(in);
    if (kerf_take(in, close)) return true;
    if (!kerf_take(in, ",")) return false;
  }
}

static inline bool kerf_read_number(kerf_reader_t *in, double *number) {
  char copy[40];
  size_t len = 0;
  while (in->at + len < in->end && len < sizeof copy - 1 && strchr("+-.0123456789eE", in->at[len]) != NULL && in->at[len] != 0) len++;
  memcpy(copy, in->at, len);
  copy[len] = 0;
  char *stop;
  *number = strtod(copy, &stop);
  if (len == 0 || *stop != 0) return false;
  in->at += len;
  return true;
}

static inline kerf_json_t *kerf_read(kerf_reader_t *in, int depth) {
  kerf_json_t *value = calloc(1, sizeof *value);
  kerf_skip(in);
  if (value == NULL || in->at == in->end || depth > KERF_JSON_DEPTH_MAX) return NULL;
  bool ok;
  switch (*in->at) {
    case '{':
      value->kind = KERF_OBJECT;
      in->at++;
      ok = kerf_read_members(in, value, "}", depth);
      break;
    case '[':
      value->kind = KERF_ARRAY;
      in->at++;
      ok = kerf_read_members(in, value, "]", depth);
      break;
    case '"':
      value->kind = KERF_STRING;
      ok = (value->text = kerf_read_string(in)) != NULL;
      break;
    case 't':
      value->kind = KERF_BOOL;
      value->number = 1;
      ok = kerf_take(in, "true");
      break;
    case 'f':
      value->kind = KERF_BOOL;
      ok = kerf_take(in, "false");
      break;
    case 'n':
      ok = kerf_take(in, "null");
      break;
    default:
      value->kind = KERF_NUMBER;
      ok = kerf_read_number(in, &value->number);
  }
  return ok ? value : NULL;
}

// The whole of a text; NULL when it is not JSON.
static inline const kerf_json_t *kerf_parse(const char *text, size_t len) {
  kerf_reader_t in = {text, text + len};
  const kerf_json_t *value = kerf_read(&in, 0);
  kerf_skip(&in);
  return in.at == in.end ? value : NULL;
}

#endif
