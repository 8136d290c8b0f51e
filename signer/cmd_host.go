package main

import "github.com/spf13/cobra"

func (c *cli) hostCommand() *cobra.Command {
	return group("host", "Set up pool hosts, check and repair them",
		`  hostwarrant host provision --policy trust-policy.yaml --root roots.pub --cluster prod-1 --class bm-amd64 --checksums SHA256SUMS --release-key release.pub -o setup.sh
  hostwarrant host check --policy trust-policy.yaml --root roots.pub --cluster prod-1 --class bm-amd64 --checksums SHA256SUMS --release-key release.pub --ssh root@192.0.2.7
  hostwarrant host repair`,
		c.hostProvisionCommand(), c.hostCheckCommand(), c.hostRepairCommand())
}
