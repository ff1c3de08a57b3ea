// Command argo applies manifests as Argo CD does, with Argo CD's own engine: a sync of what is given, and with --prune the
// deletion of what it applied before. Prints one line an object: what the sync did with it. With PruneLast, which Argo
// CD's controller carries out in a sync context for each look, the engine alone waits for ever: prune in a call of its own.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/cache"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/engine"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync/common"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/kube"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
)

// The annotation by which Argo CD knows what it applied.
const tracking = "argocd.argoproj.io/tracking-id"

func main() {
	kubeconfig := flag.String("kubeconfig", "", "")
	namespace := flag.String("namespace", "", "where objects without a namespace go")
	rounds := flag.Int("rounds", 1, "how often to sync")
	prune := flag.Bool("prune", false, "delete what was applied before and is not given")
	flag.Parse()
	if err := run(*kubeconfig, *namespace, *rounds, *prune); err != nil {
		fmt.Fprintln(os.Stderr, "argo:", err)
		os.Exit(1)
	}
}

func run(kubeconfig, namespace string, rounds int, prune bool) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	application := "app-of-" + namespace
	isManaged := func(object *unstructured.Unstructured) bool { return object.GetAnnotations()[tracking] == application }
	clusters := cache.NewClusterCache(config,
		cache.SetNamespaces([]string{namespace}),
		cache.SetLogr(logr.Discard()),
		cache.SetPopulateResourceInfoHandler(func(object *unstructured.Unstructured, _ bool) (any, bool) {
			return isManaged(object), isManaged(object)
		}))
	gitops := engine.NewEngine(config, clusters, engine.WithLogr(logr.Discard()))
	stop, err := gitops.Run()
	if err != nil {
		return err
	}
	defer stop()
	for range rounds {
		if err := syncOnce(gitops, text, application, namespace, prune); err != nil {
			return err
		}
	}
	return nil
}

func syncOnce(gitops engine.GitOpsEngine, text []byte, application, namespace string, prune bool) error {
	objects, err := kube.SplitYAML(text)
	if err != nil {
		return err
	}
	for _, object := range objects {
		annotations := object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[tracking] = application
		object.SetAnnotations(annotations)
	}
	isManaged := func(found *cache.Resource) bool { return found.Info == true }
	results, err := gitops.Sync(context.Background(), objects, isManaged, "revision", namespace,
		sync.WithPrune(prune), sync.WithLogr(logr.Discard()))
	failed := 0
	for _, result := range results {
		fmt.Printf("%s %s: %s\n", result.ResourceKey.String(), result.Status, result.Message)
		if result.Status == common.ResultCodeSyncFailed {
			failed++
		}
	}
	if err == nil && failed > 0 {
		err = fmt.Errorf("%d of %d objects failed", failed, len(results))
	}
	return err
}
