"""Drives ecs-sim with the official Python SDKs, unmodified: what they accept, a client of Alibaba Cloud accepts.

Usage: drive.py URL ACCESS_KEY_ID ACCESS_KEY_SECRET
Every check is a function that starts with `check_`; the first that fails ends the run with its name and reason.
"""

import base64
import json
import sys
import time
from urllib.parse import urlsplit

from alibabacloud_cs20151215 import models as cs
from alibabacloud_cs20151215.client import Client as CsClient
from alibabacloud_ecs20140526 import models as ecs
from alibabacloud_ecs20140526.client import Client as EcsClient
from alibabacloud_ram20150501 import models as ram
from alibabacloud_ram20150501.client import Client as RamClient
from alibabacloud_sts20150401 import models as sts
from alibabacloud_sts20150401.client import Client as StsClient
from alibabacloud_tea_openapi.models import Config
from alibabacloud_tea_openapi.exceptions import ClientException
from alibabacloud_vpc20160428 import models as vpc
from alibabacloud_vpc20160428.client import Client as VpcClient

REGION = "cn-hangzhou"
VSWITCH = "vsw-bp1sim000000000000h"
GROUP = "sg-bp1sim0000000000000"
IMAGE = "aliyun_3_x64_20G_container_optimized_alibase_20250629.vhd"
CLUSTER = "c0000000000000000000000000000sim1"
# Nothing in here takes longer; a slow machine compiles other things meanwhile.
DEADLINE_SECONDS = 60

URL, KEY_ID, KEY_SECRET = sys.argv[1:4]


def config(**more):
    settings = {"access_key_id": KEY_ID, "access_key_secret": KEY_SECRET, **more}
    return Config(protocol="http", endpoint=urlsplit(URL).netloc, region_id=REGION, **settings)


# v3 signs with ACS3-HMAC-SHA256, v2 with RPC version 1.
V3 = EcsClient(config())
V2 = EcsClient(config(signature_algorithm="v2"))


def launch(client=V3, **more):
    request = ecs.RunInstancesRequest(
        region_id=REGION,
        instance_type="ecs.g7.xlarge",
        image_id=IMAGE,
        v_switch_id=VSWITCH,
        security_group_id=GROUP,
        system_disk=ecs.RunInstancesRequestSystemDisk(category="cloud_essd", size="60"),
        **more,
    )
    return client.run_instances(request).body.instance_id_sets.instance_id_set


def describe(ids, client=V3):
    request = ecs.DescribeInstancesRequest(region_id=REGION, instance_ids=json.dumps(ids), max_results=100)
    return client.describe_instances(request).body.instances.instance


def eventually(what, ask):
    began = time.monotonic()
    while time.monotonic() - began < DEADLINE_SECONDS:
        found = ask()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{what} did not happen within {DEADLINE_SECONDS} s")


def refusal(call):
    try:
        call()
    except ClientException as error:
        return error
    raise AssertionError("the call was not refused")


def delete(ids, client=V3):
    client.delete_instances(ecs.DeleteInstancesRequest(region_id=REGION, instance_id=ids, force=True))


def check_life_of_an_instance():
    tags = [ecs.RunInstancesRequestTag(key="karpenter.sh/nodepool", value="默认 a+b*c~d")]
    user_data = base64.b64encode(b"#!/bin/bash\ntrue\n").decode()
    ids = launch(amount=2, client_token="sdk-1", tag=tags, user_data=user_data, dry_run=False)
    assert len(ids) == 2, ids
    assert launch(amount=2, client_token="sdk-1", tag=tags, user_data=user_data, dry_run=False) == ids

    def running():
        found = describe(ids)
        return found if len(found) == 2 and all(one.status == "Running" for one in found) else None

    one = eventually("running", running)[0]
    assert (one.instance_type, one.cpu, one.memory) == ("ecs.g7.xlarge", 4, 16384), one
    assert one.zone_id == "cn-hangzhou-h" and one.vpc_attributes.v_switch_id == VSWITCH
    assert one.vpc_attributes.private_ip_address.ip_address[0].startswith("10.0.")
    assert [(tag.tag_key, tag.tag_value) for tag in one.tags.tag] == [("karpenter.sh/nodepool", "默认 a+b*c~d")]
    assert one.spot_strategy == "NoSpot" and one.instance_charge_type == "PostPaid"
    assert refusal(lambda: V3.delete_instances(ecs.DeleteInstancesRequest(region_id=REGION, instance_id=ids))).code == "IncorrectInstanceStatus"
    delete(ids)
    eventually("the end of the instances", lambda: not describe(ids))


def check_rpc_signature_version_1():
    ids = launch(V2, spot_strategy="SpotAsPriceGo")
    one = eventually("running", lambda: next((one for one in describe(ids, V2) if one.status == "Running"), None))
    assert one.spot_strategy == "SpotAsPriceGo", one
    V2.delete_instance(ecs.DeleteInstanceRequest(instance_id=ids[0], force=True))


def check_instance_types_come_in_pages():
    names, token = [], None
    while True:
        request = ecs.DescribeInstanceTypesRequest(max_results=400, next_token=token)
        body = V3.describe_instance_types(request).body
        names += [one.instance_type_id for one in body.instance_types.instance_type]
        token = body.next_token
        if not token:
            break
    assert len(names) == len(set(names)) == 923, len(names)
    request = ecs.DescribeInstanceTypesRequest(instance_types=["ecs.g8y.large", "ecs.gn7i-c8g1.2xlarge"])
    arm, gpu = V3.describe_instance_types(request).body.instance_types.instance_type
    assert (arm.cpu_architecture, arm.eni_quantity, arm.eni_private_ip_address_quantity) == ("ARM", 3, 6), arm
    assert (gpu.gpuamount, gpu.gpuspec, gpu.memory_size) == (1, "NVIDIA A10", 30.0), gpu


def check_what_is_on_sale():
    request = ecs.DescribeAvailableResourceRequest(
        region_id=REGION, destination_resource="InstanceType", instance_type="ecs.g7.xlarge", instance_charge_type="PostPaid"
    )
    zones = V3.describe_available_resource(request).body.available_zones.available_zone
    assert [zone.zone_id[-1] for zone in zones] == ["h", "i", "j", "k"], zones
    resource = zones[0].available_resources.available_resource[0].supported_resources.supported_resource[0]
    assert (resource.value, resource.status_category) == ("ecs.g7.xlarge", "WithStock"), resource
    zones = V3.describe_zones(ecs.DescribeZonesRequest(region_id=REGION, verbose=False)).body.zones.zone
    assert "Instance" in zones[0].available_resource_creation.resource_types, zones
    price = V3.describe_price(ecs.DescribePriceRequest(region_id=REGION, resource_type="instance", instance_type="ecs.g7.xlarge"))
    details = price.body.price_info.price.detail_infos.detail_info
    assert details[0].resource == "instanceType" and details[0].trade_price > 1, details
    history = ecs.DescribeSpotPriceHistoryRequest(region_id=REGION, instance_type="ecs.g7.xlarge", network_type="vpc")
    rows = V3.describe_spot_price_history(history).body.spot_prices.spot_price_type
    assert all(0 < row.spot_price < row.origin_price for row in rows) and len(rows) == 8, rows
    advice = V3.describe_spot_advice(ecs.DescribeSpotAdviceRequest(region_id=REGION, instance_types=["ecs.g7.xlarge"]))
    zone = advice.body.available_spot_zones.available_spot_zone[0]
    assert 0 < int(zone.available_spot_resources.available_spot_resource[0].average_spot_discount) < 100, zone


def check_network_images_and_tags():
    client = VpcClient(config())
    tag = vpc.DescribeVSwitchesRequestTag(key="karpenter.sh/discovery", value="my-cluster")
    body = client.describe_vswitches(vpc.DescribeVSwitchesRequest(region_id=REGION, tag=[tag], page_size=3)).body
    assert (len(body.v_switches.v_switch), body.total_count) == (3, 4), body
    assert body.v_switches.v_switch[0].available_ip_address_count > 4000
    assert body.v_switches.v_switch[0].tags.tag[0].key == "karpenter.sh/discovery"
    groups = ecs.DescribeSecurityGroupsRequest(region_id=REGION, security_group_ids=json.dumps([GROUP]))
    assert V3.describe_security_groups(groups).body.security_groups.security_group[0].tags.tag[0].tag_value == "my-cluster"
    images = ecs.DescribeImagesRequest(region_id=REGION, image_family="acs:alibaba_cloud_linux_3_2104_lts_x64", page_size=100)
    assert {image.architecture for image in V3.describe_images(images).body.images.image} == {"x86_64"}
    ids = launch()
    tag = ecs.TagResourcesRequestTag(key="claim", value="one")
    V3.tag_resources(ecs.TagResourcesRequest(region_id=REGION, resource_type="instance", resource_id=ids, tag=[tag]))
    wanted = ecs.ListTagResourcesRequest(region_id=REGION, resource_type="instance", resource_id=ids)

    def tagged():
        rows = V3.list_tag_resources(wanted).body.tag_resources.tag_resource
        return rows and (rows[0].tag_key, rows[0].tag_value) == ("claim", "one")

    eventually("the tag", tagged)
    eventually("running", lambda: any(one.status == "Running" for one in describe(ids)))
    delete(ids)


def check_cluster():
    for client in (CsClient(config()), CsClient(config(signature_algorithm="v2"))):
        detail = client.describe_cluster_detail(CLUSTER).body
        assert detail.state == "running" and json.loads(detail.meta_data)["Capabilities"]["Network"] == "terway-eniip"
        request = cs.DescribeClusterAttachScriptsRequest(arch="amd64", keep_instance_name=True)
        script = client.describe_cluster_attach_scripts(CLUSTER, request).body
        assert "attach_node.sh | bash -s -- --token " in script, script
        request = cs.DescribeKubernetesVersionMetadataRequest(region=REGION, cluster_type="ManagedKubernetes")
        assert client.describe_kubernetes_version_metadata(request).body[0].runtimes[0].name == "containerd"
        assert client.get_cluster_addon_instance(CLUSTER, "terway-eniip").body.state == "active"
        error = refusal(lambda: client.describe_cluster_detail("c-none"))
        assert (error.status_code, error.code) == (404, "ErrorClusterNotFound"), error


def check_roles_and_sessions():
    role = RamClient(config()).get_role(ram.GetRoleRequest(role_name="KubernetesWorkerRole")).body.role
    assert "ecs.aliyuncs.com" in role.assume_role_policy_document, role
    request = sts.AssumeRoleWithOIDCRequest(
        role_arn=role.arn, oidcprovider_arn="acs:ram::1:oidc-provider/p", oidctoken="jwt", role_session_name="kerf"
    )
    session = StsClient(config()).assume_role_with_oidc(request).body.credentials
    keys = {
        "access_key_id": session.access_key_id,
        "access_key_secret": session.access_key_secret,
        "security_token": session.security_token,
    }
    for algorithm in ({}, {"signature_algorithm": "v2"}):
        identity = StsClient(config(**keys, **algorithm)).get_caller_identity().body
        assert identity.identity_type == "AssumedRoleUser", identity
    error = refusal(lambda: StsClient(config(**{**keys, "security_token": "CAISwrong"})).get_caller_identity())
    assert error.code == "InvalidSecurityToken.Malformed", error


def check_refusals_as_the_sdk_reads_them():
    error = refusal(lambda: launch(EcsClient(config(access_key_secret="wrong"))))
    assert (error.status_code, error.code) == (400, "SignatureDoesNotMatch"), error
    error = refusal(lambda: launch(EcsClient(config(access_key_id="LTAInone"))))
    assert (error.status_code, error.code) == (404, "InvalidAccessKeyId.NotFound"), error
    launch(client_token="sdk-2")
    error = refusal(lambda: launch(client_token="sdk-2", amount=2))
    assert (error.status_code, error.code) == (400, "IdempotentParameterMismatch"), error
    assert error.request_id, error


for name, check in list(globals().items()):
    if name.startswith("check_"):
        try:
            check()
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
            raise
        print(f"{name}: ok")
