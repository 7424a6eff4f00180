// Command apiserver is the API server of Kubernetes and its database, for tests that install the Helm chart:
//
//	apiserver etcd FLAGS
//	apiserver kube-apiserver FLAGS
package main

import (
	"fmt"
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // as in the command of Kubernetes
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: apiserver etcd|kube-apiserver FLAGS")
		os.Exit(2)
	}
	args := os.Args[1:]
	switch args[0] {
	case "etcd":
		etcdmain.Main(args)
	case "kube-apiserver":
		command := app.NewAPIServerCommand()
		command.SetArgs(args[1:])
		os.Exit(cli.Run(command))
	default:
		fmt.Fprintln(os.Stderr, "no such program:", args[0])
		os.Exit(2)
	}
}
