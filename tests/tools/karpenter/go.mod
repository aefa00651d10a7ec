// Upstream's definitions, which tests/it/upstream.rs compares ours with. Nothing of it is built; ../build.sh fetches it.
module kerf/tests/tools/karpenter

go 1.26.6

require sigs.k8s.io/karpenter v1.14.1
