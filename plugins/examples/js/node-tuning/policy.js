// Adds a script to the user data that sets sysctls and points containerd at a registry mirror, before the node joins.

import { InvalidConfig, bootstrapPolicy } from '../../../sdk/js/kerf-policy.js';

const configSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  additionalProperties: false,
  properties: {
    sysctls: {
      description: 'Kernel settings, such as {"net.core.somaxconn": "32768"}.',
      type: 'object',
      additionalProperties: { type: 'string', minLength: 1 },
    },
    registryMirror: {
      description: 'An https address that containerd asks before docker.io.',
      type: 'string',
    },
  },
};

// What goes into a script that root runs is checked letter by letter.
const check = ({ sysctls = {}, registryMirror }) => {
  const errors = Object.entries(sysctls)
    .filter(([name, value]) => !/^[A-Za-z0-9._\/-]*$/.test(name) || !/^[A-Za-z0-9._ -]*$/.test(value))
    .map(([name]) => ({ path: `/sysctls/${name}`, message: 'has characters that a sysctl does not have' }));
  if (registryMirror !== undefined && !/^https:\/\/[A-Za-z0-9.:\/_-]*$/.test(registryMirror)) {
    errors.push({
      path: '/registryMirror',
      message: 'must be an https address, such as https://mirror.example.com',
    });
  }
  return errors;
};

const script = ({ sysctls = {}, registryMirror }) => {
  const lines = ['#!/bin/bash', 'set -e'];
  const names = Object.keys(sysctls).sort();
  if (names.length > 0) {
    const settings = names.map((name) => `${name} = ${sysctls[name]}`);
    lines.push("cat > /etc/sysctl.d/90-kerf.conf <<'END'", ...settings, 'END', 'sysctl --system');
  }
  if (registryMirror !== undefined) {
    lines.push(
      'mkdir -p /etc/containerd/certs.d/docker.io',
      "cat > /etc/containerd/certs.d/docker.io/hosts.toml <<'END'",
      'server = "https://registry-1.docker.io"',
      `[host."${registryMirror}"]`,
      'capabilities = ["pull", "resolve"]',
      'END',
    );
  }
  return lines.join('\n') + '\n';
};

export const { lifecycle, bootstrapUserdata } = bootstrapPolicy({
  about: {
    name: 'node-tuning',
    version: '0.1.0',
    summary: 'sets sysctls and a registry mirror on new nodes',
    configSchema,
    defaultConfig: {},
  },
  check,

  render(config, node, parts) {
    if (check(config).length > 0) throw new InvalidConfig('see validate-config');
    return [{ contentType: 'text/x-shellscript', body: script(config) }, ...parts];
  },
});
