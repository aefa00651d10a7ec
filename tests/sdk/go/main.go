// Drives ecs-sim with the official Go SDKs, unmodified: what they accept, a client of Alibaba Cloud accepts.
//
// Usage: drive URL ACCESS_KEY_ID ACCESS_KEY_SECRET
// Prints a line for each check, `name: ok` or what differs; the exit code says whether all went well.
package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	cs "github.com/alibabacloud-go/cs-20151215/v5/client"
	openapi "github.com/alibabacloud-go/darabonba-openapi/v2/client"
	ecs "github.com/alibabacloud-go/ecs-20140526/v4/client"
	"github.com/alibabacloud-go/tea/tea"
	vpc "github.com/alibabacloud-go/vpc-20160428/v6/client"
)

const (
	region  = "cn-hangzhou"
	vswitch = "vsw-bp1sim000000000000h"
	group   = "sg-bp1sim0000000000000"
	image   = "aliyun_3_x64_20G_container_optimized_alibase_20250629.vhd"
	cluster = "c0000000000000000000000000000sim1"
	// Nothing in here takes longer; a slow machine compiles other things meanwhile.
	deadline = time.Minute
)

// clients of one signature: v3 is ACS3-HMAC-SHA256, v2 RPC and ROA version 1.
type clients struct {
	ecs *ecs.Client
	vpc *vpc.Client
	cs  *cs.Client
}

func connect(secret, algorithm string) (*clients, error) {
	target, err := url.Parse(os.Args[1])
	if err != nil {
		return nil, err
	}
	config := func() *openapi.Config {
		config := &openapi.Config{
			AccessKeyId:     tea.String(os.Args[2]),
			AccessKeySecret: tea.String(secret),
			Endpoint:        tea.String(target.Host),
			Protocol:        tea.String("http"),
			RegionId:        tea.String(region),
		}
		if algorithm != "" {
			config.SignatureAlgorithm = tea.String(algorithm)
		}
		return config
	}
	made := &clients{}
	if made.ecs, err = ecs.NewClient(config()); err != nil {
		return nil, err
	}
	if made.vpc, err = vpc.NewClient(config()); err != nil {
		return nil, err
	}
	made.cs, err = cs.NewClient(config())
	return made, err
}

func (c *clients) launch(token string, amount int32) ([]string, error) {
	reply, err := c.ecs.RunInstances(&ecs.RunInstancesRequest{
		RegionId:         tea.String(region),
		InstanceType:     tea.String("ecs.g7.xlarge"),
		ImageId:          tea.String(image),
		VSwitchId:        tea.String(vswitch),
		SecurityGroupIds: []*string{tea.String(group)},
		Amount:           tea.Int32(amount),
		ClientToken:      tea.String(token),
		DryRun:           tea.Bool(false),
		UserData:         tea.String(base64.StdEncoding.EncodeToString([]byte("#!/bin/bash\ntrue\n"))),
		SystemDisk: &ecs.RunInstancesRequestSystemDisk{
			Category: tea.String("cloud_essd"), Size: tea.String("60"),
		},
		Tag: []*ecs.RunInstancesRequestTag{
			{Key: tea.String("karpenter.sh/nodepool"), Value: tea.String("默认 a+b*c~d")},
		},
	})
	if err != nil {
		return nil, err
	}
	return tea.StringSliceValue(reply.Body.InstanceIdSets.InstanceIdSet), nil
}

func (c *clients) describe(ids []string) ([]*ecs.DescribeInstancesResponseBodyInstancesInstance, error) {
	text, _ := json.Marshal(ids)
	reply, err := c.ecs.DescribeInstances(&ecs.DescribeInstancesRequest{
		RegionId: tea.String(region), InstanceIds: tea.String(string(text)), MaxResults: tea.Int32(100),
	})
	if err != nil {
		return nil, err
	}
	return reply.Body.Instances.Instance, nil
}

func eventually(what string, ask func() (bool, error)) error {
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if is, err := ask(); is || err != nil {
			return err
		}
	}
	return fmt.Errorf("%s did not happen within %s", what, deadline)
}

func same(what string, found, wanted any) error {
	if fmt.Sprint(found) != fmt.Sprint(wanted) {
		return fmt.Errorf("%s is %v, not %v", what, found, wanted)
	}
	return nil
}

func (c *clients) lifeOfAnInstance() error {
	token := fmt.Sprintf("go-%d", time.Now().UnixNano())
	ids, err := c.launch(token, 2)
	if err != nil {
		return err
	}
	again, err := c.launch(token, 2)
	if err := errors.Join(err, same("the answer to the same token", again, ids)); err != nil {
		return err
	}
	if _, err = c.launch(token, 1); code(err) != "IdempotentParameterMismatch" {
		return fmt.Errorf("other parameters with the same token: %v", err)
	}
	var found []*ecs.DescribeInstancesResponseBodyInstancesInstance
	err = eventually("running", func() (bool, error) {
		found, err = c.describe(ids)
		running := len(found) == 2
		for _, one := range found {
			running = running && tea.StringValue(one.Status) == "Running"
		}
		return running, err
	})
	if err != nil {
		return err
	}
	one := found[0]
	err = errors.Join(
		same("InstanceType", tea.StringValue(one.InstanceType), "ecs.g7.xlarge"),
		same("Memory", tea.Int32Value(one.Memory), 16384),
		same("ZoneId", tea.StringValue(one.ZoneId), "cn-hangzhou-h"),
		same("VSwitchId", tea.StringValue(one.VpcAttributes.VSwitchId), vswitch),
		same("tags", len(one.Tags.Tag), 1),
		same("tag", tea.StringValue(one.Tags.Tag[0].TagValue), "默认 a+b*c~d"),
	)
	if err != nil {
		return err
	}
	_, err = c.ecs.DeleteInstances(&ecs.DeleteInstancesRequest{
		RegionId: tea.String(region), InstanceId: tea.StringSlice(ids), Force: tea.Bool(true),
	})
	if err != nil {
		return err
	}
	return eventually("the end of the instances", func() (bool, error) {
		found, err := c.describe(ids)
		return len(found) == 0, err
	})
}

func (c *clients) catalog() error {
	reply, err := c.ecs.DescribeInstanceTypes(&ecs.DescribeInstanceTypesRequest{
		InstanceTypes: tea.StringSlice([]string{"ecs.g8y.large"}),
	})
	if err != nil {
		return err
	}
	arm := reply.Body.InstanceTypes.InstanceType[0]
	return errors.Join(
		same("CpuArchitecture", tea.StringValue(arm.CpuArchitecture), "ARM"),
		same("EniQuantity", tea.Int32Value(arm.EniQuantity), 3),
	)
}

func (c *clients) network() error {
	reply, err := c.vpc.DescribeVSwitches(&vpc.DescribeVSwitchesRequest{
		RegionId: tea.String(region), PageSize: tea.Int32(3),
		Tag: []*vpc.DescribeVSwitchesRequestTag{
			{Key: tea.String("karpenter.sh/discovery"), Value: tea.String("my-cluster")},
		},
	})
	if err != nil {
		return err
	}
	return errors.Join(
		same("the page", len(reply.Body.VSwitches.VSwitch), 3),
		same("TotalCount", tea.Int32Value(reply.Body.TotalCount), 4),
	)
}

func (c *clients) clusterCalls() error {
	detail, err := c.cs.DescribeClusterDetail(tea.String(cluster))
	if err != nil {
		return err
	}
	script, err := c.cs.DescribeClusterAttachScripts(tea.String(cluster), &cs.DescribeClusterAttachScriptsRequest{
		Arch: tea.String("amd64"), KeepInstanceName: tea.Bool(true),
	})
	if err != nil {
		return err
	}
	if !strings.Contains(tea.StringValue(script.Body), "attach_node.sh | bash -s -- --token ") {
		return fmt.Errorf("the attach script is %q", tea.StringValue(script.Body))
	}
	_, err = c.cs.DescribeClusterDetail(tea.String("c-none"))
	return errors.Join(
		same("state", tea.StringValue(detail.Body.State), "running"),
		same("the refusal", code(err), "ErrorClusterNotFound"),
	)
}

func refusals() error {
	wrong, err := connect("wrong", "")
	if err != nil {
		return err
	}
	_, err = wrong.describe([]string{"i-1"})
	return same("the refusal of a wrong secret", code(err), "SignatureDoesNotMatch")
}

// code is the API's error code as the SDK reads it.
func code(err error) string {
	var refused *tea.SDKError
	if errors.As(err, &refused) {
		return tea.StringValue(refused.Code)
	}
	if err == nil {
		return "no error"
	}
	// Newer SDKs have errors of their own, which have the method.
	if coded, is := err.(interface{ GetCode() *string }); is {
		return tea.StringValue(coded.GetCode())
	}
	return err.Error()
}

func main() {
	failed := false
	check := func(name string, run func() error) {
		if err := run(); err != nil {
			failed = true
			fmt.Printf("%s: %s\n", name, strings.ReplaceAll(err.Error(), "\n", "; "))
			return
		}
		fmt.Printf("%s: ok\n", name)
	}
	for _, algorithm := range []string{"", "v2"} {
		made, err := connect(os.Args[3], algorithm)
		if err != nil {
			fmt.Printf("connect%s: %v\n", algorithm, err)
			os.Exit(1)
		}
		check("life_of_an_instance"+algorithm, made.lifeOfAnInstance)
		check("catalog"+algorithm, made.catalog)
		check("network"+algorithm, made.network)
		check("cluster"+algorithm, made.clusterCalls)
	}
	check("refusals", refusals)
	if failed {
		os.Exit(1)
	}
}
