output "cluster_id" {
  description = "Id of the ACK cluster."
  value       = alicloud_cs_managed_kubernetes.main.id
}

output "kubeconfig" {
  description = "File with the way into the cluster."
  value       = data.alicloud_cs_cluster_credential.main.output_file
}

output "cluster_name" {
  description = "Name of the cluster; vSwitches and the security group carry it in karpenter.sh/discovery."
  value       = var.cluster_name
}

output "region" {
  description = "Region of the cluster."
  value       = var.region
}

output "namespace" {
  description = "Namespace of kerf."
  value       = var.namespace
}

output "role_arn" {
  description = "RAM role of kerf."
  value       = alicloud_ram_role.kerf.arn
}

output "oidc_provider_arn" {
  description = "OIDC provider of the cluster, by which kerf takes its role."
  value       = local.rrsa.ram_oidc_provider_arn
}
