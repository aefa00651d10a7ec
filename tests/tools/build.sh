#!/usr/bin/env bash
# Builds the servers that the tests run against, from the Go modules beside this file.
#
#   build.sh            everything that host/control-plane starts
#   build.sh --all      helm and a registry too, which only some tests need
#   build.sh NAME ...   only these
#
# It also fetches upstream's definitions (karpenter/), which one test compares ours with.
#
# The result goes to .control-plane/bin, or to $KERF_CONTROL_PLANE_DIR. A binary that $KUBEBUILDER_ASSETS
# has is not built. What is up to date is skipped: each binary has a stamp of its module and of this script.
# The first build on a machine takes some 15 minutes on two cores, nearly all of it in kube-apiserver.
set -euo pipefail

tools=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=${KERF_CONTROL_PLANE_DIR:-$tools/../../.control-plane/bin}
stamps=$bin/.stamps

# Cheap ones first: a broken set-up shows early.
servers=(etcd kube-scheduler kube-controller-manager kube-apiserver kwok)

# name -> "module folder, package"
source_of() {
  case $1 in
    etcd) echo "etcd go.etcd.io/etcd/server/v3" ;;
    kube-*) echo "kubernetes k8s.io/kubernetes/cmd/$1" ;;
    kwok) echo "kwok sigs.k8s.io/kwok/cmd/kwok" ;;
    helm) echo "helm helm.sh/helm/v4/cmd/helm" ;;
    registry) echo "registry ." ;;
    *) echo "build.sh: no such binary: $1 (known: ${servers[*]} helm registry)" >&2; return 1 ;;
  esac
}

# Without a version in it, clients cannot parse what the API server answers on /version.
version_flags() {
  case $1 in
    kubernetes)
      local version variable=k8s.io/component-base/version
      version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
      local major=${version#v} minor=${version#v*.}
      echo "-X $variable.gitVersion=$version -X $variable.gitMajor=${major%%.*} -X $variable.gitMinor=${minor%%.*}"
      ;;
    helm) echo "-X helm.sh/helm/v4/internal/version.version=$(go list -m -f '{{.Version}}' helm.sh/helm/v4)" ;;
  esac
}

stamp_of() {
  { find "$tools/$1" -type f | sort | xargs cat; cat "$tools/build.sh"; go version; } | sha256sum | cut -d' ' -f1
}

# One binary at a time: `go build` uses all cores by itself, and linking two servers at once needs 3 GiB.
build() {
  local name=$1 position=$2 module package stamp start=$SECONDS
  read -r module package <<<"$(source_of "$name")"
  if [[ -n ${KUBEBUILDER_ASSETS:-} && -x $KUBEBUILDER_ASSETS/$name ]]; then
    echo "[$position] $name … in KUBEBUILDER_ASSETS"
    return
  fi
  stamp=$(stamp_of "$module")
  if [[ -x $bin/$name && $(cat "$stamps/$name" 2>/dev/null) == "$stamp" ]]; then
    echo "[$position] $name … up to date"
    return
  fi
  printf '[%s] %s … ' "$position" "$name"
  # The rename keeps a running binary intact and never leaves half a file behind.
  (cd "$tools/$module" && CGO_ENABLED=0 GOWORK=off go build -mod=readonly -trimpath \
    -ldflags "-s -w $(version_flags "$module")" -o "$bin/.$name.new" "$package")
  mv "$bin/.$name.new" "$bin/$name"
  echo "$stamp" >"$stamps/$name"
  echo "$((SECONDS - start))s"
}

case ${1:-} in
  -h | --help) sed -n '2,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit ;;
  --all) names=("${servers[@]}" helm registry) ;;
  '') names=("${servers[@]}") ;;
  *) names=("$@") ;;
esac
command -v go >/dev/null || { echo "build.sh: go is not installed; see https://go.dev/doc/install" >&2; exit 1; }
for name in "${names[@]}"; do source_of "$name" >/dev/null; done

mkdir -p "$stamps"
bin=$(cd "$bin" && pwd)
stamps=$bin/.stamps
# Two builds at once, as from `make test` in two terminals, would do the same work twice.
if command -v flock >/dev/null; then
  exec 9>"$stamps/lock"
  flock 9
fi
(cd "$tools/karpenter" && GOWORK=off go mod download)
for i in "${!names[@]}"; do build "${names[$i]}" "$((i + 1))/${#names[@]}"; done
