package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// ready is what a client needs; printed as one line of JSON.
type ready struct {
	Dir         string            `json:"dir"`
	Bin         string            `json:"bin"`
	Server      string            `json:"server"`
	CA          string            `json:"ca"`
	Etcd        string            `json:"etcd"`
	Kubeconfigs map[string]string `json:"kubeconfigs"`
	Pids        map[string]int    `json:"pids"`
	Audit       string            `json:"audit,omitempty"`
	// PodProxy is the URL of a proxy to the fake pods.
	PodProxy string `json:"podProxy,omitempty"`
	// Workloads is false where only etcd and kube-apiserver were found (KUBEBUILDER_ASSETS):
	// nothing then makes pods out of Deployments, or collects garbage.
	Workloads bool `json:"workloads"`
}

// up runs a control plane from start to end.
func up(ctx context.Context, o *options) error {
	ctx, stopSignals := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stopSignals()
	// An answer to a client that is gone must not end us before everything is taken down.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if !o.detached {
		go endWithParent(end)
	}

	plane := newPlane(o)
	defer func() {
		plane.killAll()
		if !o.keep {
			_ = os.RemoveAll(o.dir)
		}
	}()
	commands := make(chan string)
	if !o.detached {
		go readLines(os.Stdin, commands, end)
	}
	began := time.Now()
	if err := plane.start(ctx); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil // asked to end while starting
		}
		return err
	}
	told := plane.ready()
	if o.answeringPods {
		proxy, err := servePods(plane.api)
		if err != nil {
			return err
		}
		told.PodProxy = proxy
	}
	plane.say("ready after %.1f s", time.Since(began).Seconds())
	if err := json.NewEncoder(os.Stdout).Encode(told); err != nil {
		return err
	}
	return plane.serve(ctx, commands)
}

// endWithParent cancels when this process has been handed to another parent.
func endWithParent(end context.CancelCauseFunc) {
	parent := os.Getppid()
	for os.Getppid() == parent {
		time.Sleep(500 * time.Millisecond)
	}
	end(fmt.Errorf("parent %d is gone", parent))
}

func (p *plane) ready() ready {
	r := ready{
		Dir:         p.o.dir,
		Bin:         p.o.bin,
		Server:      p.server(),
		CA:          filepath.Join(p.o.dir, "ca.crt"),
		Etcd:        p.etcdURL(),
		Kubeconfigs: map[string]string{},
		Pids:        p.pids(),
		Workloads:   p.workloads,
	}
	for _, u := range fixedUsers {
		r.Kubeconfigs[u.name] = p.kubeconfigPath(u.name)
	}
	if p.o.audit {
		r.Audit = p.auditLog()
	}
	return r
}
