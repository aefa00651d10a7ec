// Adds a script to the user data that sets sysctls and points containerd at a registry mirror, before the node joins.
package main

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kerf/policy"
	"kerf/policy/bootstrap"
)

//go:embed config-schema.json
var schema string

type config struct {
	Sysctls        map[string]string `json:"sysctls"`
	RegistryMirror *string           `json:"registryMirror"`
}

func init() {
	bootstrap.Export(bootstrap.Policy[config]{
		About: policy.About{
			Name:          "node-tuning",
			Version:       "0.1.0",
			Summary:       "sets sysctls and a registry mirror on new nodes",
			ConfigSchema:  schema,
			DefaultConfig: `{}`,
		},
		Check:  check,
		Render: render,
	})
}

// What goes into a script that root runs is checked letter by letter.
func check(it config) (errors []policy.ConfigError) {
	for _, name := range slices.Sorted(maps.Keys(it.Sysctls)) {
		if !isPlain(name, "._-/") || !isPlain(it.Sysctls[name], "._- ") {
			errors = append(errors, policy.ConfigError{
				Path:    "/sysctls/" + name,
				Message: "has characters that a sysctl does not have",
			})
		}
	}
	if it.RegistryMirror != nil {
		address, isHTTPS := strings.CutPrefix(*it.RegistryMirror, "https://")
		if !isHTTPS || !isPlain(address, ".-:/_") {
			errors = append(errors, policy.ConfigError{
				Path:    "/registryMirror",
				Message: "must be an https address, such as https://mirror.example.com",
			})
		}
	}
	return errors
}

func isPlain(text, more string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		isAlphanumeric := r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
		return !isAlphanumeric && !strings.ContainsRune(more, r)
	})
}

func render(it config, _ *bootstrap.Node, parts []bootstrap.Part) ([]bootstrap.Part, error) {
	if len(check(it)) > 0 {
		return nil, policy.InvalidConfig("see validate-config")
	}
	return slices.Insert(parts, 0, bootstrap.Script(script(it))), nil
}

func script(it config) string {
	body := "#!/bin/bash\nset -e\n"
	if len(it.Sysctls) > 0 {
		body += "cat > /etc/sysctl.d/90-kerf.conf <<'END'\n"
		for _, name := range slices.Sorted(maps.Keys(it.Sysctls)) {
			body += fmt.Sprintf("%s = %s\n", name, it.Sysctls[name])
		}
		body += "END\nsysctl --system\n"
	}
	if it.RegistryMirror != nil {
		body += "mkdir -p /etc/containerd/certs.d/docker.io\n"
		body += "cat > /etc/containerd/certs.d/docker.io/hosts.toml <<'END'\n"
		body += fmt.Sprintf("server = \"https://registry-1.docker.io\"\n[host.\"%s\"]\n", *it.RegistryMirror)
		body += "capabilities = [\"pull\", \"resolve\"]\nEND\n"
	}
	return body
}

func main() {}
