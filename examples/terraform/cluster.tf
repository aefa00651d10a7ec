resource "alicloud_cs_managed_kubernetes" "main" {
  name                           = var.cluster_name
  cluster_spec                   = "ack.pro.small"
  version                        = var.cluster_version
  vswitch_ids                    = alicloud_vswitch.node[*].id
  pod_vswitch_ids                = alicloud_vswitch.pod[*].id
  service_cidr                   = var.service_cidr
  security_group_id              = alicloud_security_group.node.id
  new_nat_gateway                = true
  slb_internet_enabled           = true
  enable_rrsa                    = true
  deletion_protection            = false
  skip_set_certificate_authority = true

  addons {
    name = "terway-eniip"
  }
  addons {
    name = "csi-plugin"
  }
  addons {
    name = "csi-provisioner"
  }

  # What the cluster made by itself goes with it.
  delete_options {
    resource_type = "SLB"
    delete_mode   = "delete"
  }
  delete_options {
    resource_type = "ALB"
    delete_mode   = "delete"
  }
  delete_options {
    resource_type = "SLS_Data"
    delete_mode   = "delete"
  }
  delete_options {
    resource_type = "SLS_ControlPlane"
    delete_mode   = "delete"
  }
}

resource "alicloud_ecs_key_pair" "node" {
  count         = var.ssh_public_key == "" ? 0 : 1
  key_pair_name = "${var.cluster_name}-node"
  public_key    = var.ssh_public_key
}

# kerf and what it needs run here, never on nodes that kerf made. Everything else gets its nodes from kerf.
resource "alicloud_cs_kubernetes_node_pool" "system" {
  node_pool_name       = "system"
  cluster_id           = alicloud_cs_managed_kubernetes.main.id
  vswitch_ids          = alicloud_vswitch.node[*].id
  security_group_ids   = [alicloud_security_group.node.id]
  instance_types       = [var.instance_type]
  desired_size         = var.system_nodes
  image_type           = "AliyunLinux3"
  system_disk_category = "cloud_essd"
  system_disk_size     = 40
  key_name             = one(alicloud_ecs_key_pair.node[*].key_pair_name)
}

# Good for half a day; each `terraform apply` fetches a new one.
data "alicloud_cs_cluster_credential" "main" {
  cluster_id                 = alicloud_cs_managed_kubernetes.main.id
  temporary_duration_minutes = 720
  output_file                = "${path.module}/kubeconfig.yaml"
}
