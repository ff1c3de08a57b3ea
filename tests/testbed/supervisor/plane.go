package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// plane is one control plane.
type plane struct {
	o         *options
	ports     ports
	ca        *authority
	api       *client
	workloads bool
	// seeding: it only makes the seed, of what kube-apiserver creates by itself.
	seeding bool

	mu         sync.Mutex
	components map[string]*component
	died       chan string
}

func newPlane(o *options) *plane {
	return &plane{o: o, components: map[string]*component{}, died: make(chan string, 16)}
}

func (p *plane) say(format string, args ...any) {
	if !p.o.quiet {
		fmt.Fprintf(os.Stderr, "testbed: "+format+"\n", args...)
	}
}

func (p *plane) server() string          { return fmt.Sprintf("https://%s:%d", p.o.bind, p.ports.apiserver) }
func (p *plane) etcdURL() string         { return fmt.Sprintf("http://127.0.0.1:%d", p.ports.etcd) }
func (p *plane) path(name string) string { return filepath.Join(p.o.dir, name) }
func (p *plane) auditLog() string        { return p.path("audit.log") }
func (p *plane) kubeconfigPath(user string) string {
	return filepath.Join(p.o.dir, "kubeconfig", user+".yaml")
}

// errPortTaken: somebody else took a port between our choosing it and a component's bind.
var errPortTaken = errors.New("a chosen port was taken by somebody else")

// start brings everything up; ports that were snatched away are chosen again.
func (p *plane) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.o.startTimeout)
	defer cancel()
	if err := p.prepare(); err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		err := p.startOnce(ctx)
		if !errors.Is(err, errPortTaken) || attempt == 5 {
			return err
		}
		p.say("%v: starting again", err)
		p.killAll()
		if err := os.RemoveAll(p.path("etcd")); err != nil {
			return err
		}
	}
}

// prepare writes what does not depend on ports.
func (p *plane) prepare() error {
	for _, dir := range []string{"logs", "kubeconfig", "pods"} {
		if err := os.MkdirAll(p.path(dir), 0o700); err != nil {
			return err
		}
	}
	for _, need := range []string{"etcd", "kube-apiserver"} {
		if _, err := os.Stat(filepath.Join(p.o.bin, need)); err != nil {
			return fmt.Errorf("%s is not in --bin %s (%w): build it with tests/testbed/build", need, p.o.bin, err)
		}
	}
	p.workloads = true
	for _, name := range []string{"kube-controller-manager", "kube-scheduler", "kwok"} {
		if _, err := os.Stat(filepath.Join(p.o.bin, name)); err != nil {
			p.workloads = false
			p.say("no %s in %s: Deployments, Jobs and pods will not progress", name, p.o.bin)
		}
	}
	var err error
	if p.ca, err = newAuthority(p.o.dir, p.o.bind, p.o.advertise); err != nil {
		return err
	}
	return errors.Join(p.writeTokens(), p.writeServiceAccountKey(), p.writeAuditPolicy())
}

func (p *plane) startOnce(ctx context.Context) error {
	var err error
	if p.ports, err = choosePorts(p.o.bind, p.o.port); err != nil {
		return err
	}
	if err := errors.Join(p.writeKubeconfigs(), p.writeKwokConfig()); err != nil {
		return err
	}
	p.api = newClient(p.server(), p.ca.pool(), token("admin"))

	if err := p.sow(); err != nil {
		return err
	}
	p.say("etcd and kube-apiserver start (%s)", p.server())
	if err := p.launch("etcd"); err != nil {
		return err
	}
	if err := p.launch("kube-apiserver"); err != nil {
		return err
	}
	if err := p.await(ctx, "kube-apiserver is ready", p.api.readyz); err != nil {
		return err
	}
	if p.seeding {
		return nil
	}
	if err := p.applyObjects(ctx); err != nil {
		return err
	}
	if !p.workloads {
		return nil
	}
	p.say("kube-controller-manager, kube-scheduler and kwok start")
	for _, name := range []string{"kube-controller-manager", "kube-scheduler", "kwok"} {
		if err := p.launch(name); err != nil {
			return err
		}
	}
	if err := p.await(ctx, "the default service account is there", p.api.exists("/api/v1/namespaces/default/serviceaccounts/default")); err != nil {
		return err
	}
	return p.await(ctx, "the node is ready", p.api.nodeReady)
}

// await asks again and again until done says nil, a component died, or time is up.
func (p *plane) await(ctx context.Context, what string, done func(context.Context) error) error {
	for {
		err := done(ctx)
		if err == nil {
			return nil
		}
		select {
		case name := <-p.died:
			return p.postMortem(name)
		case <-ctx.Done():
			return fmt.Errorf("gave up waiting until %s: last answer: %w\n%s", what, err, p.tail("kube-apiserver"))
		case <-time.After(50 * time.Millisecond):
		}
	}
}
