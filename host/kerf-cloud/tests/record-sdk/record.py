"""Records what the official Python SDK sends for the actions that kerf uses.

The recording is the yardstick for our own encoder (tests/wire.rs), so it is made by the SDK alone, against a server
on loopback that answers every call with an empty object. Make it anew with:

    python3 -m venv venv && venv/bin/pip install -r requirements.txt
    venv/bin/python record.py > ../fixtures/python-sdk-wire-more.json
"""

import http.server
import json
import threading

from alibabacloud_cs20151215 import models as cs_models
from alibabacloud_cs20151215.client import Client as Cs
from alibabacloud_ecs20140526 import models as ecs
from alibabacloud_ecs20140526.client import Client as Ecs
from alibabacloud_tea_openapi.models import Config
from alibabacloud_vpc20160428 import models as vpc
from alibabacloud_vpc20160428.client import Client as Vpc

REQUESTS = []


class Recorder(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length).decode()
        REQUESTS.append(
            {
                "method": self.command,
                "target": self.path,
                "headers": [[name, value] for name, value in self.headers.items()],
                "body": body,
            }
        )
        reply = b"{}"
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    do_GET = do_POST = do_PUT = do_DELETE = answer

    def log_message(self, *_):
        pass


def config(endpoint, **extra):
    return Config(
        access_key_id="LTAItestid",
        access_key_secret="testsecret",
        region_id="cn-hangzhou",
        endpoint=endpoint,
        protocol="http",
        **extra,
    )


REGION = "cn-hangzhou"


def calls(ecs_client, vpc_client, cs_client):
    yield "RunInstances full", lambda: ecs_client.run_instances(
        ecs.RunInstancesRequest(
            region_id=REGION,
            instance_type="ecs.g7.xlarge",
            image_id="aliyun_3_x64_20G_alibase_20240528.vhd",
            v_switch_id="vsw-1",
            security_group_ids=["sg-1", "sg-2"],
            amount=3,
            min_amount=1,
            client_token="kerf-1a2b",
            instance_name="default-abcde",
            user_data="IyEvYmluL2Jhc2gK",
            key_pair_name="ops",
            ram_role_name="KubernetesWorkerRole",
            resource_group_id="rg-1",
            system_disk=ecs.RunInstancesRequestSystemDisk(
                category="cloud_essd",
                size="120",
                performance_level="PL0",
                encrypted="true",
                kmskey_id="key-1",
            ),
            data_disk=[
                ecs.RunInstancesRequestDataDisk(
                    category="cloud_essd",
                    size=100,
                    performance_level="PL1",
                    device="/dev/xvdb",
                    snapshot_id="s-1",
                    delete_with_instance=True,
                    encrypted="true",
                    kmskey_id="key-2",
                ),
                ecs.RunInstancesRequestDataDisk(
                    category="cloud_auto", size=40, delete_with_instance=False
                ),
            ],
            instance_charge_type="PostPaid",
            spot_strategy="SpotWithPriceLimit",
            spot_price_limit=0.125,
            spot_duration=0,
            spot_interruption_behavior="Terminate",
            http_endpoint="enabled",
            http_tokens="required",
            http_put_response_hop_limit=2,
            internet_charge_type="PayByTraffic",
            internet_max_bandwidth_out=5,
            tag=[
                ecs.RunInstancesRequestTag(key="karpenter.sh/nodepool", value="节点 a+b*c~d"),
                ecs.RunInstancesRequestTag(key="empty", value=""),
            ],
        )
    )
    yield "RunInstances on-demand", lambda: ecs_client.run_instances(
        ecs.RunInstancesRequest(
            region_id=REGION,
            instance_type="ecs.c7.large",
            image_id="img-1",
            v_switch_id="vsw-1",
            security_group_ids=["sg-1"],
            amount=1,
            client_token="kerf-2",
            system_disk=ecs.RunInstancesRequestSystemDisk(category="cloud_essd", size="40"),
            instance_charge_type="PostPaid",
            spot_strategy="NoSpot",
        )
    )
    yield "DescribeInstances by id", lambda: ecs_client.describe_instances(
        ecs.DescribeInstancesRequest(
            region_id=REGION, instance_ids='["i-1","i-2"]', max_results=100
        )
    )
    yield "DescribeInstances by tags", lambda: ecs_client.describe_instances(
        ecs.DescribeInstancesRequest(
            region_id=REGION,
            max_results=100,
            next_token="caeba0bbb2be03f84eb48b699f0a4883==",
            tag=[
                ecs.DescribeInstancesRequestTag(key="karpenter.sh/managed-by", value="kerf"),
                ecs.DescribeInstancesRequestTag(key="karpenter.sh/cluster-id", value="c-1"),
            ],
        )
    )
    yield "DeleteInstances", lambda: ecs_client.delete_instances(
        ecs.DeleteInstancesRequest(
            region_id=REGION,
            instance_id=["i-1", "i-2"],
            force=True,
            terminate_subscription=False,
            client_token="kerf-del-1",
        )
    )
    yield "DeleteInstance", lambda: ecs_client.delete_instance(
        ecs.DeleteInstanceRequest(instance_id="i-1", force=True)
    )
    yield "DescribeInstanceTypes", lambda: ecs_client.describe_instance_types(
        ecs.DescribeInstanceTypesRequest(max_results=100, next_token="t+/=")
    )
    yield "DescribeAvailableResource on-demand", lambda: ecs_client.describe_available_resource(
        ecs.DescribeAvailableResourceRequest(
            region_id=REGION,
            destination_resource="InstanceType",
            instance_charge_type="PostPaid",
            spot_strategy="NoSpot",
            io_optimized="optimized",
            network_category="vpc",
            resource_type="instance",
        )
    )
    yield "DescribeAvailableResource spot", lambda: ecs_client.describe_available_resource(
        ecs.DescribeAvailableResourceRequest(
            region_id=REGION,
            destination_resource="InstanceType",
            instance_charge_type="PostPaid",
            spot_strategy="SpotAsPriceGo",
            io_optimized="optimized",
            network_category="vpc",
            resource_type="instance",
        )
    )
    yield "DescribeZones", lambda: ecs_client.describe_zones(
        ecs.DescribeZonesRequest(region_id=REGION, verbose=False)
    )
    yield "DescribeSecurityGroups", lambda: ecs_client.describe_security_groups(
        ecs.DescribeSecurityGroupsRequest(
            region_id=REGION,
            max_results=100,
            security_group_ids='["sg-1","sg-2"]',
        )
    )
    yield "DescribeSecurityGroups by tag", lambda: ecs_client.describe_security_groups(
        ecs.DescribeSecurityGroupsRequest(
            region_id=REGION,
            max_results=100,
            security_group_name="nodes",
            tag=[
                ecs.DescribeSecurityGroupsRequestTag(
                    key="karpenter.sh/discovery", value="my-cluster"
                )
            ],
        )
    )
    yield "DescribeImages by id", lambda: ecs_client.describe_images(
        ecs.DescribeImagesRequest(
            region_id=REGION,
            image_id="a.vhd,b.vhd",
            show_expired=True,
            page_number=1,
            page_size=100,
        )
    )
    yield "DescribeImages by family", lambda: ecs_client.describe_images(
        ecs.DescribeImagesRequest(
            region_id=REGION,
            image_family="acs:alibaba_cloud_linux_3_2104_lts_x64",
            status="Available",
            page_number=2,
            page_size=100,
        )
    )
    yield "TagResources", lambda: ecs_client.tag_resources(
        ecs.TagResourcesRequest(
            region_id=REGION,
            resource_type="instance",
            resource_id=["i-1"],
            tag=[ecs.TagResourcesRequestTag(key="Name", value="node-1")],
        )
    )
    yield "DescribeSpotPriceHistory", lambda: ecs_client.describe_spot_price_history(
        ecs.DescribeSpotPriceHistoryRequest(
            region_id=REGION,
            instance_type="ecs.g7.xlarge",
            network_type="vpc",
            ostype="linux",
            zone_id="cn-hangzhou-h",
        )
    )
    yield "DescribeSpotPriceHistory of all zones", lambda: ecs_client.describe_spot_price_history(
        ecs.DescribeSpotPriceHistoryRequest(
            region_id=REGION,
            instance_type="ecs.g7.xlarge",
            network_type="vpc",
            ostype="linux",
            offset=0,
        )
    )
    yield "DescribePrice", lambda: ecs_client.describe_price(
        ecs.DescribePriceRequest(
            region_id=REGION,
            resource_type="instance",
            instance_type="ecs.g7.xlarge",
            zone_id="cn-hangzhou-h",
            instance_network_type="vpc",
            price_unit="Hour",
            period=1,
            amount=1,
            system_disk=ecs.DescribePriceRequestSystemDisk(
                category="cloud_essd", size=40
            ),
        )
    )
    yield "DescribeSpotAdvice", lambda: ecs_client.describe_spot_advice(
        ecs.DescribeSpotAdviceRequest(region_id=REGION)
    )
    yield "DescribeVSwitches by id", lambda: vpc_client.describe_vswitches(
        vpc.DescribeVSwitchesRequest(
            region_id=REGION, v_switch_id="vsw-1,vsw-2", page_number=1, page_size=50
        )
    )
    yield "DescribeVSwitches by tag", lambda: vpc_client.describe_vswitches(
        vpc.DescribeVSwitchesRequest(
            region_id=REGION,
            page_number=1,
            page_size=50,
            tag=[
                vpc.DescribeVSwitchesRequestTag(
                    key="karpenter.sh/discovery", value="my-cluster"
                )
            ],
        )
    )
    yield "AttachScripts arm64", lambda: cs_client.describe_cluster_attach_scripts(
        "c0123",
        cs_models.DescribeClusterAttachScriptsRequest(
            arch="arm64", expired=1798686245, format_disk=True, keep_instance_name=True
        ),
    )
    yield "ClusterDetail", lambda: cs_client.describe_cluster_detail("c0123")


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"127.0.0.1:{server.server_port}"
    recordings = []
    for suffix, extra in (("", {}), (" v2", {"signature_algorithm": "v2"})):
        clients = [kind(config(endpoint, **extra)) for kind in (Ecs, Vpc, Cs)]
        for name, call in calls(*clients):
            REQUESTS.clear()
            try:
                call()
            except Exception as error:  # an empty reply may not fit the model; the request was sent all the same
                if not REQUESTS:
                    raise error
            recordings.append({"name": name + suffix, "requests": list(REQUESTS)})
    print(json.dumps(recordings, indent=1, ensure_ascii=False))


main()
