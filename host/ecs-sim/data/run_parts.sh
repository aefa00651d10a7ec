# What cloud-init does with scripts: each is executed by itself in the order of the names, a failure stops none of the
# others, and the boot has failed if one did.
LC_ALL=C
failed=0
shopt -s nullglob
cd /
for script in /var/lib/cloud/instance/scripts/*; do
  echo "cloud-init: running ${script##*/}"
  "$script" </dev/null
  code=$?
  if ((code != 0)); then
    echo "cloud-init: ${script##*/} failed with exit code $code"
    failed=1
  fi
done
exit "$failed"
