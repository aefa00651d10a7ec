# shellcheck shell=bash
# What deploy.sh and uninstall.sh share. Sourced, never run.

# Settings of a run that have no place in variables.tf.
ANSWERS=answers.auto.tfvars.json
# Manifests with the names of this cluster.
# shellcheck disable=SC2034 # both scripts use it
FILLED=filled
# Nobody else may read the kubeconfig or the state; terraform and its provider inherit this.
umask 077

STEP=""

# step TEXT: what is being done now; a failure names it.
step() {
  STEP=$1
  printf '\n== %s\n' "$STEP"
}

# fail MESSAGE [HINT]: ends the run.
fail() {
  trap - ERR
  printf 'error: %s: %s\n' "${STEP:-start}" "$1" >&2
  [[ -z ${2:-} ]] || printf 'hint: %s\n' "$2" >&2
  exit 1
}

# on_error: what went wrong without a message of our own.
on_error() { fail "a command failed; its own words are above" "mend the cause and run $(basename "$0") again: what is done already is kept"; }

# need TOOL...: each must be on PATH.
need() {
  local tool
  for tool in "$@"; do
    command -v "$tool" >/dev/null || fail "$tool is not on PATH" "install $tool, then run $(basename "$0") again"
  done
}

# run HINT COMMAND...: a command whose failure is explained by HINT.
run() {
  local hint=$1 code=0
  shift
  "$@" || code=$?
  ((code == 0)) || fail "'$*' failed with exit code $code" "$hint, then run $(basename "$0") again: what is done already is kept"
}

# again SECONDS COMMAND...: tries until the command succeeds, every ten seconds for this long.
again() {
  local left=$1
  shift
  until "$@" >/dev/null 2>&1; do
    ((left > 0)) || return 1
    sleep 10
    left=$((left - 10))
  done
}

# has_terminal: somebody is there to answer.
has_terminal() { [[ -t 0 ]]; }

# ask NAME TEXT DEFAULT [needed]: a terraform variable, from TF_VAR_NAME, from the last run, or from the terminal.
ask() {
  local name=$1 text=$2 default=$3 variable="TF_VAR_$1" answer=""
  if [[ -n ${!variable+set} ]]; then
    answer=${!variable}
  elif answer=$(saved "$name"); then
    :
  elif has_terminal; then
    read -r -p "$text${default:+ [$default]}: " answer || true
    answer=${answer:-$default}
  else
    answer=$default
  fi
  [[ -n $answer || -z ${4:-} ]] || fail "$name has no value" "set $variable, or run $(basename "$0") at a terminal"
  export "$variable=$answer"
}

# saved NAME: the answer of the last run.
saved() {
  [[ -s $ANSWERS ]] || return 1
  local line
  line=$(grep -E "^ *\"$1\": \"" "$ANSWERS") || return 1
  line=${line#*: \"}
  line=${line%,}
  printf '%s' "${line%\"}"
}

# save NAME...: keeps the answers, so that the next run and the uninstall do not ask. No secret is among them.
save() {
  local name variable comma=""
  {
    printf '{'
    for name in "$@"; do
      variable="TF_VAR_$name"
      [[ -n ${!variable} ]] || continue
      [[ ${!variable} != *[\"\\]* ]] || fail "$name must not contain quotes or backslashes"
      printf '%s\n  "%s": "%s"' "$comma" "$name" "${!variable}"
      comma=,
    done
    printf '\n}\n'
  } >"$ANSWERS.new"
  mv "$ANSWERS.new" "$ANSWERS"
}

# ask_secret NAME TEXT: from the environment or the terminal; kept nowhere.
ask_secret() {
  local name=$1 text=$2 answer=""
  if [[ -z ${!name:-} ]] && has_terminal; then
    read -r -s -p "$text: " answer || true
    printf '\n'
    export "$name=$answer"
  fi
  [[ -n ${!name:-} ]] || fail "$name is not set" "export $name, or run $(basename "$0") at a terminal"
}

# ask_all: everything that terraform needs.
ask_all() {
  ask_secret ALICLOUD_ACCESS_KEY "AccessKey id of a RAM user that may make VPCs, clusters and RAM roles"
  ask_secret ALICLOUD_SECRET_KEY "AccessKey secret"
  ask region "Region, such as cn-hangzhou" "" needed
  ask vpc_cidr "Addresses of the VPC" "10.0.0.0/16"
  ask cluster_version "Kubernetes version (empty: the newest)" ""
  ask service_cidr "Addresses of Services" "172.21.0.0/20"
  ask instance_type "Type of the two system nodes" "ecs.g7.large"
  ask ssh_public_key "SSH public key for them (empty: none)" ""
  save region vpc_cidr cluster_version service_cidr instance_type ssh_public_key
  # An empty text is not the same as no value.
  [[ -n ${TF_VAR_cluster_version:-} ]] || unset TF_VAR_cluster_version
}

# want NAME...: terraform's outputs, into variables of the same names.
want() {
  local name value
  for name in "$@"; do
    value=$(terraform output -raw "$name") || value=""
    [[ -n $value ]] || fail "terraform has no output $name" "terraform output shows what there is; run $(basename "$0") again"
    printf -v "$name" '%s' "$value"
  done
}
