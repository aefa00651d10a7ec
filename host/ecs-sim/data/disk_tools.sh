#!/bin/bash
# Stands for blkid, mdadm, mkfs and mount in a simulated machine (see machine_room/disks.rs).
set -euo pipefail
mkdir -p /run/ecs-sim
case ${0##*/} in
  mkfs.*)
    device=${!#}
    [[ -e $device ]] || { echo "mkfs: $device: no such device" >&2; exit 1; }
    echo "TYPE=${0##*mkfs.} UUID=sim-${device##*/}" >"$device"
    ;;
  blkid)
    device=${!#}
    read -r type uuid <"$device" || exit 2
    case " $* " in
      *" -s UUID "*) echo "${uuid#UUID=}" ;;
      *" -s TYPE "*) echo "${type#TYPE=}" ;;
      *) echo "$device: $uuid $type" ;;
    esac
    ;;
  mdadm)
    device=$2
    mkdir -p "${device%/*}"
    : >"$device"
    echo "mdadm $*" >>/run/ecs-sim/mounts
    ;;
  mount)
    folder=${!#}
    [[ -d $folder ]] || { echo "mount: $folder: mount point does not exist" >&2; exit 32; }
    line=$(grep -F " $folder " /etc/fstab) || { echo "mount: $folder: not in /etc/fstab" >&2; exit 1; }
    echo "$line" >>/run/ecs-sim/mounts
    ;;
esac
