locals {
  # kerf finds vSwitches and the security group by this tag. Not by the cluster's id: the cluster needs them first.
  discovery = { "karpenter.sh/discovery" = var.cluster_name }
  zones     = slice(data.alicloud_zones.with_type.ids, 0, min(3, length(data.alicloud_zones.with_type.ids)))
}

# Zones that have the system nodes' type in stock.
data "alicloud_zones" "with_type" {
  available_resource_creation = "VSwitch"
  available_instance_type     = var.instance_type
}

resource "alicloud_vpc" "main" {
  vpc_name   = var.cluster_name
  cidr_block = var.vpc_cidr
}

# For nodes.
resource "alicloud_vswitch" "node" {
  count        = length(local.zones)
  vswitch_name = "${var.cluster_name}-node-${count.index}"
  vpc_id       = alicloud_vpc.main.id
  zone_id      = local.zones[count.index]
  cidr_block   = cidrsubnet(var.vpc_cidr, 4, count.index)
  tags         = local.discovery
}

# For pods: Terway gives each an address of its own.
resource "alicloud_vswitch" "pod" {
  count        = length(local.zones)
  vswitch_name = "${var.cluster_name}-pod-${count.index}"
  vpc_id       = alicloud_vpc.main.id
  zone_id      = local.zones[count.index]
  cidr_block   = cidrsubnet(var.vpc_cidr, 4, count.index + 8)
}

resource "alicloud_security_group" "node" {
  security_group_name = "${var.cluster_name}-node"
  vpc_id              = alicloud_vpc.main.id
  tags                = local.discovery
}

# Nodes and pods of the VPC reach each other; from outside nobody gets in.
resource "alicloud_security_group_rule" "inside" {
  type              = "ingress"
  ip_protocol       = "all"
  port_range        = "-1/-1"
  policy            = "accept"
  priority          = 1
  security_group_id = alicloud_security_group.node.id
  cidr_ip           = var.vpc_cidr
}
