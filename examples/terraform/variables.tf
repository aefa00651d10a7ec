variable "region" {
  description = "Region of the cluster, such as cn-hangzhou."
  type        = string

  validation {
    condition     = can(regex("^[a-z]+-[a-z0-9-]+$", var.region))
    error_message = "A region looks like cn-hangzhou."
  }
}

variable "cluster_name" {
  description = "Name of the cluster and the beginning of the names of what belongs to it. Unique in the account."
  type        = string
  default     = "kerf-example"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,40}$", var.cluster_name))
    error_message = "2 to 41 small letters, digits and hyphens, beginning with a letter."
  }
}

variable "vpc_cidr" {
  description = "Addresses of the VPC; each zone gets a sixteenth for nodes and one for pods."
  type        = string
  default     = "10.0.0.0/16"

  validation {
    condition     = can(cidrsubnet(var.vpc_cidr, 4, 15))
    error_message = "An IPv4 network with room for sixteen parts, such as 10.0.0.0/16."
  }
}

variable "cluster_version" {
  description = "Kubernetes version, such as 1.33.3-aliyun.1; null takes the newest that ACK has."
  type        = string
  default     = null
}

variable "service_cidr" {
  description = "Addresses of Services; must not overlap with vpc_cidr."
  type        = string
  default     = "172.21.0.0/20"

  validation {
    condition     = can(cidrhost(var.service_cidr, 1))
    error_message = "An IPv4 network, such as 172.21.0.0/20."
  }
}

variable "instance_type" {
  description = "Type of the system nodes, on which kerf itself runs."
  type        = string
  default     = "ecs.g7.large"
}

variable "system_nodes" {
  description = "System nodes, 2 to 6. A fixed number: a second autoscaler would answer the same pods as kerf."
  type        = number
  default     = 2

  validation {
    condition     = var.system_nodes >= 2 && var.system_nodes <= 6
    error_message = "2 to 6 system nodes."
  }
}

variable "ssh_public_key" {
  description = "Public key for the system nodes; empty for none. Nobody needs to log in."
  type        = string
  default     = ""
}

variable "namespace" {
  description = "Namespace of kerf, which the RAM role trusts."
  type        = string
  default     = "kerf-system"
}
