terraform {
  required_version = ">= 1.5"
  required_providers {
    alicloud = {
      source  = "aliyun/alicloud"
      version = ">= 1.252.0"
    }
  }
}

# Credentials come from ALICLOUD_ACCESS_KEY and ALICLOUD_SECRET_KEY, never from a file of this folder.
provider "alicloud" {
  region = var.region
}
