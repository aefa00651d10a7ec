#!/usr/bin/env bash
# Takes away what deploy.sh made, and what kerf launched since. Nothing is left that costs. The order matters: NodePools first,
# then the instances go, and only then kerf, which is the one that deletes them. Can be run again at any time.
#
#   ./uninstall.sh          asks
#   ./uninstall.sh --yes    does not ask
#   ./uninstall.sh --yes --cluster-only
#                           leaves kerf alone: only for a cluster that does not answer and in which kerf never ran. Instances
#                           that kerf made would stay and cost.
set -Eeuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source-path=SCRIPTDIR source=common.sh
source ./common.sh
trap on_error ERR

# Draining respects PodDisruptionBudgets, so that it may take a while.
DRAIN_MAX=1800
DEFINITIONS=(nodeclaims.karpenter.sh nodepools.karpenter.sh nodeoverlays.karpenter.sh
  ecsnodeclasses.karpenter.alibabacloud.com capacitybuffers.autoscaling.x-k8s.io)

yes=false
with_kerf=true
for argument in "$@"; do
  case $argument in
    --yes) yes=true ;;
    --cluster-only) with_kerf=false ;;
    *) fail "unknown argument $argument" "uninstall.sh takes --yes and --cluster-only" ;;
  esac
done
$yes || has_terminal || fail "nobody is there to approve" "run uninstall.sh --yes"

# has_kind NAME: the cluster still knows it. No answer is not a no: what is not deleted here is never deleted.
has_kind() {
  local found
  found=$(kubectl get customresourcedefinition "$1" --ignore-not-found --output name) ||
    fail "the cluster does not say whether it knows $1" "run uninstall.sh again"
  [[ -n $found ]]
}

# has_release NAME: helm still has it.
has_release() {
  local found
  found=$(helm list --namespace "$namespace" --short --filter "^$1\$") ||
    fail "helm does not say whether it has $1" "run uninstall.sh again"
  [[ -n $found ]]
}

# remove_kerf: everything inside the cluster.
remove_kerf() {
  export KUBECONFIG=$kubeconfig
  step "look whether the cluster answers"
  run "only kerf deletes the instances that it made; if it never ran in this cluster, uninstall.sh --yes --cluster-only goes on without it" \
    kubectl get --raw /readyz

  step "delete the NodePools"
  if has_kind nodepools.karpenter.sh; then
    run "kubectl --kubeconfig $kubeconfig get nodepools says what is left" \
      kubectl delete nodepools --all --ignore-not-found --wait=false

    step "wait for the instances to go (at most $((DRAIN_MAX / 60)) minutes)"
    run "a PodDisruptionBudget may hold a node: kubectl --kubeconfig $kubeconfig describe nodeclaims says which; kerf must run until they are gone" \
      kubectl wait --for=delete nodeclaims --all --timeout="${DRAIN_MAX}s"
    # One that was made while the pools went was not waited for.
    local left
    left=$(kubectl get nodeclaims --output name) || fail "the cluster does not say which NodeClaims are left" "run uninstall.sh again"
    [[ -z $left ]] || fail "still there: ${left//$'\n'/ }" "run uninstall.sh again"
  fi

  step "delete the ECSNodeClasses"
  if has_kind ecsnodeclasses.karpenter.alibabacloud.com; then
    run "a NodeClaim may still use one: kubectl --kubeconfig $kubeconfig describe ecsnodeclasses" \
      kubectl delete ecsnodeclasses --all --ignore-not-found --timeout=120s
  fi

  step "uninstall kerf"
  local release
  for release in kerf kerf-crd; do
    if has_release "$release"; then
      run "helm status $release --namespace $namespace says more" helm uninstall "$release" --namespace "$namespace" --wait
    fi
  done

  step "delete the definitions"
  run "kubectl --kubeconfig $kubeconfig get crd says what is left" \
    kubectl delete customresourcedefinition "${DEFINITIONS[@]}" --ignore-not-found --timeout=120s

  step "delete the namespace"
  run "kubectl --kubeconfig $kubeconfig get all --namespace $namespace says what is left" \
    kubectl delete namespace "$namespace" --ignore-not-found --timeout=300s
}

step "look for the tools"
need terraform kubectl helm

step "ask for what is missing"
ask_all
if ! $yes; then
  read -r -p "Delete the cluster with everything in it? Type yes: " answer || true
  [[ ${answer:-} == yes ]] || fail "not approved" "type yes, or run uninstall.sh --yes"
fi

step "terraform init"
run "look at the way to the provider's registry" terraform init -input=false

step "read terraform's state"
state=$(terraform state list) || fail "the state cannot be read" "run uninstall.sh again where deploy.sh ran: terraform.tfstate is there"
if $with_kerf && grep -q '^alicloud_cs_managed_kubernetes\.main$' <<<"$state"; then
  step "fetch a new kubeconfig"
  run "if kerf never ran in this cluster, uninstall.sh --yes --cluster-only goes on without it" \
    terraform apply -refresh-only -auto-approve -input=false
  namespace="" kubeconfig=""
  want namespace kubeconfig
  remove_kerf
fi

step "terraform destroy"
run "read what terraform says above; a resource that is still used by something of your own is the usual cause" \
  terraform destroy -auto-approve -input=false

step "look whether anything is left"
state=$(terraform state list) || fail "the state cannot be read" "run uninstall.sh again"
[[ -z $state ]] || fail "terraform still has: $(tr '\n' ' ' <<<"$state")" "run uninstall.sh again"
rm -rf -- "$FILLED" kubeconfig.yaml "$ANSWERS" "$ANSWERS.new"

step "gone"
printf 'Nothing is left but disks of volumes whose reclaim policy is Retain, and what you made yourself.\n'
