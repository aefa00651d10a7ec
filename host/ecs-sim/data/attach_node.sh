#!/bin/bash
# Served by ecs-sim in place of ACK's own script. It takes the same flags, and asks the simulator to register the node.
# One process only (curl): fifty machines boot on two cores at once.
set -euo pipefail

readonly server="@SERVER_URL@" arch="@ARCH@"

fail() {
  echo "attach_node.sh: $*" >&2
  exit 1
}

form=()
while (($# > 0)); do
  case $1 in
    --token | --endpoint | --cluster-dns | --node-name-mode | --labels | --taints | --cms-version | --openapi-token | \
      --addon-names | --cpu-policy | --node-cidr-mask | --node-port-range | --runtime | --runtime-version | --timezone | \
      --node-config)
      (($# >= 2)) || fail "the flag $1 needs a value"
      form+=(--data-urlencode "${1#--}=$2")
      shift 2
      ;;
    --cms-enabled | --keep-instance-name | --format-disk) shift ;;
    *) fail "unknown argument: $1" ;;
  esac
done

instance_id=
read -r instance_id </var/lib/cloud/data/instance-id || [[ -n $instance_id ]] || fail "not on an instance"
echo "attach_node.sh: joining as $instance_id"
# A kubelet goes on trying while the API server is away; so does this, on 5xx only.
curl -sS --fail-with-body --retry 20 --retry-delay 1 --max-time 60 \
  --data-urlencode "instance-id=$instance_id" --data-urlencode "arch=$arch" "${form[@]}" "$server/_sim/join"
