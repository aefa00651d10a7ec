# Run by ecs-sim inside fresh mount and process namespaces: arguments are the root of the machine and the folders of the
# host that it sees read-only. What follows in there has no rights over the host: no mounts, no devices, no settings.
set -eu
root=$1
shift
for folder in "$@"; do
  mount -o bind,ro "$folder" "$root$folder"
done
for device in null zero random urandom; do
  mount --bind "/dev/$device" "$root/dev/$device"
done
mount -t proc proc "$root/proc"
mount -o bind,ro "$root/proc/sys" "$root/proc/sys"
# A runaway script fills no disk: files end at 64 MiB.
ulimit -f 65536
exec chroot "$root" /usr/bin/setpriv \
  --bounding-set=-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid \
  /bin/bash /var/lib/cloud/run-parts.sh
