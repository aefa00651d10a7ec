locals {
  rrsa = alicloud_cs_managed_kubernetes.main.rrsa_metadata[0]
}

# ram-policy.json is what `kerf ram-policy` prints: the calls that kerf makes, and no other.
resource "alicloud_ram_policy" "kerf" {
  policy_name     = "${var.cluster_name}-kerf"
  policy_document = file("${path.module}/ram-policy.json")
  description     = "What kerf calls."
}

# Only kerf's service account in this cluster can take it.
resource "alicloud_ram_role" "kerf" {
  role_name   = "${var.cluster_name}-kerf"
  description = "Taken by kerf's service account (RRSA)."
  assume_role_policy_document = jsonencode({
    Version = "1"
    Statement = [{
      Action    = "sts:AssumeRole"
      Effect    = "Allow"
      Principal = { Federated = [local.rrsa.ram_oidc_provider_arn] }
      Condition = {
        StringEquals = {
          "oidc:aud" = "sts.aliyuncs.com"
          "oidc:iss" = local.rrsa.rrsa_oidc_issuer_url
          "oidc:sub" = "system:serviceaccount:${var.namespace}:kerf"
        }
      }
    }]
  })
}

resource "alicloud_ram_role_policy_attachment" "kerf" {
  role_name   = alicloud_ram_role.kerf.role_name
  policy_name = alicloud_ram_policy.kerf.policy_name
  policy_type = "Custom"
}
