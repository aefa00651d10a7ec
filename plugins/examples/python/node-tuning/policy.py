"""Adds a script to the user data that sets sysctls and points containerd at a registry mirror, before the node joins."""

import re

from kerf_policy import BootstrapPolicy, InvalidConfig, export
from wit_world.exports.bootstrap_userdata import Part


class NodeTuning(BootstrapPolicy):
    name = "node-tuning"
    summary = "sets sysctls and a registry mirror on new nodes"
    config_schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "sysctls": {
                "description": 'Kernel settings, such as {"net.core.somaxconn": "32768"}.',
                "type": "object",
                "additionalProperties": {"type": "string", "minLength": 1},
            },
            "registryMirror": {
                "description": "An https address that containerd asks before docker.io.",
                "type": "string",
            },
        },
    }
    default_config = {}

    def check(self, config):
        """What goes into a script that root runs is checked letter by letter."""
        errors = [
            (f"/sysctls/{name}", "has characters that a sysctl does not have")
            for name, value in config.get("sysctls", {}).items()
            if not re.fullmatch(r"[A-Za-z0-9._/-]*", name) or not re.fullmatch(r"[A-Za-z0-9._ -]*", value)
        ]
        mirror = config.get("registryMirror")
        if mirror is not None and not re.fullmatch(r"https://[A-Za-z0-9.:/_-]*", mirror):
            errors.append(("/registryMirror", "must be an https address, such as https://mirror.example.com"))
        return errors

    def render(self, config, node, parts):
        if self.check(config):
            raise InvalidConfig("see validate-config")
        return [Part("text/x-shellscript", None, script(config)), *parts]


def script(config):
    lines = ["#!/bin/bash", "set -e"]
    sysctls = config.get("sysctls", {})
    if sysctls:
        lines.append("cat > /etc/sysctl.d/90-kerf.conf <<'END'")
        lines.extend(f"{name} = {sysctls[name]}" for name in sorted(sysctls))
        lines.extend(["END", "sysctl --system"])
    mirror = config.get("registryMirror")
    if mirror is not None:
        lines.append("mkdir -p /etc/containerd/certs.d/docker.io")
        lines.append("cat > /etc/containerd/certs.d/docker.io/hosts.toml <<'END'")
        lines.append('server = "https://registry-1.docker.io"')
        lines.append(f'[host."{mirror}"]')
        lines.extend(['capabilities = ["pull", "resolve"]', "END"])
    return "\n".join(lines) + "\n"


Lifecycle, BootstrapUserdata = export(NodeTuning)
