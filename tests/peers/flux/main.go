// Command flux applies manifests as Flux does, with Flux's own library: a dry-run of all of them, then each where it
// differs, in stages, and a wait until they are ready. Prints what each round changed: one line an object.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/cli-utils/pkg/kstatus/polling/engine"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "")
	rounds := flag.Int("rounds", 1, "how often to apply")
	wait := flag.Duration("wait", 0, "how long to wait for what was applied; 0 = not at all")
	health := flag.String("health", "[]", "healthCheckExprs of a Kustomization, as JSON")
	delete := flag.Bool("delete", false, "delete what was applied, as pruning does")
	flag.Parse()
	if err := run(*kubeconfig, *health, *rounds, *wait, *delete); err != nil {
		fmt.Fprintln(os.Stderr, "flux:", err)
		os.Exit(1)
	}
}

func run(kubeconfig, health string, rounds int, wait time.Duration, delete bool) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	kube, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	var checks []kustomize.CustomHealthCheck
	if err := json.Unmarshal([]byte(health), &checks); err != nil {
		return err
	}
	reader, err := cel.NewStatusReader(checks)
	if err != nil {
		return err
	}
	poller := polling.NewStatusPoller(kube, kube.RESTMapper(), polling.Options{
		CustomStatusReaders: []engine.StatusReader{reader(kube.RESTMapper())},
	})
	manager := ssa.NewResourceManager(kube, poller, ssa.Owner{Field: "kustomize-controller", Group: "kustomize.toolkit.fluxcd.io"})
	objects, err := utils.ReadObjects(os.Stdin)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if delete {
		changes, err := manager.DeleteAll(ctx, objects, ssa.DefaultDeleteOptions())
		if err != nil {
			return err
		}
		fmt.Println(changes)
		return manager.WaitForTermination(objects, ssa.WaitOptions{Interval: 100 * time.Millisecond, Timeout: wait})
	}
	for range rounds {
		changes, err := manager.ApplyAllStaged(ctx, objects, ssa.DefaultApplyOptions())
		if err != nil {
			return err
		}
		fmt.Println(changes)
		if wait == 0 {
			continue
		}
		options := ssa.WaitOptions{Interval: 100 * time.Millisecond, Timeout: wait}
		if err := manager.WaitForSet(changes.ToObjMetadataSet(), options); err != nil {
			return err
		}
	}
	return nil
}
