package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	sched "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// components maps the name that the binary is started under to what it then is.
var components = map[string]func() int{
	"kube-apiserver":          func() int { return cli.Run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() int { return cli.Run(kcm.NewControllerManagerCommand()) },
	"kube-scheduler":          func() int { return cli.Run(sched.NewSchedulerCommand()) },
	"etcd":                    func() int { etcdmain.Main(os.Args); return 0 },
}
