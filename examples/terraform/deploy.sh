#!/usr/bin/env bash
# Makes an ACK cluster with kerf in it. Asks for what is missing, and can be run again at any time: each step leaves what is
# there already. Needs terraform, kubectl and helm.
#
#   ./deploy.sh          shows terraform's plan and asks
#   ./deploy.sh --yes    does not ask
#
# CHART and CRD_CHART name the charts (default: those of this repository), IMAGE the repository of the image.
set -Eeuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source-path=SCRIPTDIR source=common.sh
source ./common.sh
trap on_error ERR

CHART=${CHART:-../../charts/kerf}
CRD_CHART=${CRD_CHART:-../../charts/kerf-crd}
# Seconds for the API server, and again for the nodes.
WAIT_MAX=600

approve=()
case ${1:-} in
  "") has_terminal || fail "nobody is there to approve the plan" "run deploy.sh --yes" ;;
  --yes) approve=(-auto-approve) ;;
  *) fail "unknown argument $1" "deploy.sh takes --yes or nothing" ;;
esac

# fill FILE: with the names of this cluster.
fill() {
  sed -e "s/\${CLUSTER_ID}/$cluster_id/g" -e "s/\${CLUSTER_NAME}/$cluster_name/g" "$1" >"$FILLED/$1"
}

step "look for the tools"
need terraform kubectl helm

step "ask for what is missing"
ask_all

step "terraform init"
run "look at the way to the provider's registry" terraform init -input=false

step "terraform apply"
run "read what terraform says above; a quota or a permission is the usual cause" \
  terraform apply -input="$([[ ${#approve[@]} -eq 0 ]] && echo true || echo false)" "${approve[@]}"

step "read terraform's outputs"
cluster_id="" cluster_name="" region="" namespace="" kubeconfig="" role_arn="" oidc_provider_arn=""
want cluster_id cluster_name region namespace kubeconfig role_arn oidc_provider_arn
[[ -s $kubeconfig ]] || fail "$kubeconfig is not there" "delete nothing; run deploy.sh again, it fetches a new one"
export KUBECONFIG=$kubeconfig

step "wait for the API server (at most $((WAIT_MAX / 60)) minutes)"
again "$WAIT_MAX" kubectl get --raw /readyz ||
  fail "the API server does not answer" "is its address reachable from here? kubectl --kubeconfig $kubeconfig get --raw /readyz says why; then run deploy.sh again"

step "wait for Ready nodes (at most $((WAIT_MAX / 60)) minutes)"
# There may be none yet, and waiting for none fails at once.
again "$WAIT_MAX" kubectl wait --for=condition=Ready nodes --all --timeout=60s ||
  fail "not every node is Ready" "kubectl --kubeconfig $kubeconfig describe nodes says why; then run deploy.sh again"

step "install the definitions"
run "helm status kerf-crd --namespace $namespace says more" \
  helm upgrade --install kerf-crd "$CRD_CHART" --namespace "$namespace" --create-namespace --take-ownership

step "install kerf"
image=()
[[ -z ${IMAGE:-} ]] || image=(--set "image.repository=$IMAGE")
run "kubectl --kubeconfig $kubeconfig --namespace $namespace get pods,events says more; if helm says that another operation is in progress, helm uninstall kerf --namespace $namespace first" \
  helm upgrade --install kerf "$CHART" --namespace "$namespace" --skip-crds --wait --timeout 5m \
  --set "settings.clusterID=$cluster_id" --set "settings.region=$region" \
  --set "credentials.rrsa.roleARN=$role_arn" --set "credentials.rrsa.oidcProviderARN=$oidc_provider_arn" "${image[@]}"

step "say what may be launched"
mkdir -p "$FILLED"
fill nodeclass.yaml
fill nodepool.yaml
run "the message names the field" kubectl apply -f "$FILLED/nodeclass.yaml" -f "$FILLED/nodepool.yaml"

step "wait until both are ready"
run "kubectl --kubeconfig $kubeconfig describe ecsnodeclass/default nodepool/default says why" \
  kubectl wait --for=condition=Ready ecsnodeclass/default nodepool/default --timeout=120s

step "ready"
cat <<END
The cluster $cluster_id runs kerf. Pods that find no room now get nodes.
  export KUBECONFIG=$PWD/${kubeconfig#./}
  kubectl apply -f ../quickstart/deployment.yaml && kubectl get nodeclaims -w
To take all of it away again: ./uninstall.sh
END
