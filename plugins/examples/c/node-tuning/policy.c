// Adds a script to the user data that sets sysctls and points containerd at a registry mirror, before the node joins.

#include "kerf_bootstrap.h"

static const char schema[] = {
#embed "config-schema.json"
    , 0};

const kerf_about_t kerf_about = {
    .name = "node-tuning",
    .version = "0.1.0",
    .summary = "sets sysctls and a registry mirror on new nodes",
    .config_schema = schema,
    .default_config = "{}",
};

#define ALPHANUMERIC "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static bool is_plain(const char *text, const char *allowed) { return text != NULL && text[strspn(text, allowed)] == 0; }

// What goes into a script that root runs is checked letter by letter.
void kerf_check(const kerf_json_t *config, kerf_errors_t *errors) {
  kerf_each(it, kerf_get(config, "sysctls")) {
    if (!is_plain(it->key, ALPHANUMERIC "._-/") || !is_plain(kerf_text(it), ALPHANUMERIC "._- ")) {
      kerf_wrong(errors, kerf_format("/sysctls/%s", it->key), "has characters that a sysctl does not have");
    }
  }
  const kerf_json_t *mirror = kerf_get(config, "registryMirror");
  if (mirror == NULL) return;
  const char *address = kerf_text(mirror);
  if (address == NULL || strncmp(address, "https://", 8) != 0 || !is_plain(address + 8, ALPHANUMERIC ".-:/_")) {
    kerf_wrong(errors, "/registryMirror", "must be an https address, such as https://mirror.example.com");
  }
}

static int by_key(const void *a, const void *b) {
  return strcmp((*(const kerf_json_t *const *)a)->key, (*(const kerf_json_t *const *)b)->key);
}

static char *sysctl_lines(const kerf_json_t *sysctls) {
  size_t count = 0, i = 0;
  kerf_each(it, sysctls) count++;
  const kerf_json_t **sorted = malloc(count * sizeof *sorted);
  if (sorted == NULL) kerf_panic("out of memory");
  kerf_each(it, sysctls) sorted[i++] = it;
  qsort(sorted, count, sizeof *sorted, by_key);
  char *lines = "";
  for (i = 0; i < count; i++) lines = kerf_format("%s%s = %s\n", lines, sorted[i]->key, sorted[i]->text);
  return lines;
}

static char *script(const kerf_json_t *config) {
  const kerf_json_t *sysctls = kerf_get(config, "sysctls");
  const char *mirror = kerf_text(kerf_get(config, "registryMirror"));
  char *body = "#!/bin/bash\nset -e\n";
  if (sysctls != NULL && sysctls->first != NULL) {
    body = kerf_format("%scat > /etc/sysctl.d/90-kerf.conf <<'END'\n%sEND\nsysctl --system\n", body, sysctl_lines(sysctls));
  }
  if (mirror != NULL) {
    body = kerf_format(
        "%smkdir -p /etc/containerd/certs.d/docker.io\n"
        "cat > /etc/containerd/certs.d/docker.io/hosts.toml <<'END'\n"
        "server = \"https://registry-1.docker.io\"\n[host.\"%s\"]\n"
        "capabilities = [\"pull\", \"resolve\"]\nEND\n",
        body, mirror);
  }
  return body;
}

void kerf_render(const kerf_json_t *config, const kerf_node_t *node, const kerf_parts_t *parts, kerf_parts_t *out) {
  kerf_errors_t errors = {0};
  kerf_check(config, &errors);
  if (errors.len > 0) {
    kerf_fail(KERF_INVALID_CONFIG, "see validate-config");
    return;
  }
  kerf_script(out, script(config));
  kerf_keep(out, parts);
}
