package supervisor

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// component is one process of the control plane.
type component struct {
	name     string
	cmd      *exec.Cmd
	exited   chan struct{}
	expected bool // its end was asked for
	began    time.Time
	restarts int // times left that it is started again when it dies at once
}

// spawn runs f on one thread that never ends: the kernel's parent-death signal follows the
// thread that forked, not the process, and goroutines wander between threads.
var spawn = func() func(func() error) error {
	type job struct {
		f    func() error
		done chan error
	}
	jobs := make(chan job)
	go func() {
		runtime.LockOSThread()
		for j := range jobs {
			j.done <- j.f()
		}
	}()
	return func(f func() error) error {
		j := job{f, make(chan error)}
		jobs <- j
		return <-j.done
	}
}()

// launch starts a component and watches over it.
func (p *plane) launch(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.components[name]; c != nil && !c.over() {
		return fmt.Errorf("%s runs already (pid %d)", name, c.cmd.Process.Pid)
	}
	log, err := os.OpenFile(p.logPath(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(p.o.bin, name), p.arguments(name)...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, p.o.dir
	cmd.Env = append(os.Environ(), "KUBECONFIG=")
	// Its own group, so that Ctrl-C reaches the supervisor alone, which ends them in order;
	// killed by the kernel should the supervisor be killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := spawn(cmd.Start); err != nil {
		return fmt.Errorf("cannot start %s: %w", name, err)
	}
	c := &component{name: name, cmd: cmd, exited: make(chan struct{}), began: time.Now()}
	if name != "etcd" && name != "kube-apiserver" {
		c.restarts = 3
	}
	p.components[name] = c
	go p.reap(c)
	return nil
}

// reap waits for a component's end, and starts it again where that is its rule: kwok's
// node would be lost after 40 s, and its pods with it.
func (p *plane) reap(c *component) {
	_ = c.cmd.Wait()
	close(c.exited)
	if p.expected(c) {
		return
	}
	lived := time.Since(c.began)
	if lived > 10*time.Second && c.restarts > 0 {
		c.restarts = 3
	}
	if c.restarts > 0 {
		p.say("%s died after %.1f s (%s) and is started again; its log: %s", c.name, lived.Seconds(), c.cmd.ProcessState, p.logPath(c.name))
		time.Sleep(300 * time.Millisecond)
		if p.expected(c) || p.launch(c.name) != nil {
			return
		}
		p.mu.Lock()
		p.components[c.name].restarts = c.restarts - 1
		p.mu.Unlock()
		return
	}
	select {
	case p.died <- c.name:
	default:
	}
}

func (p *plane) expected(c *component) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return c.expected
}

func (c *component) over() bool {
	select {
	case <-c.exited:
		return true
	default:
		return false
	}
}

// halt ends a component by a signal and waits for it; SIGKILL follows after 30 s.
func (p *plane) halt(name string, signal syscall.Signal) error {
	p.mu.Lock()
	c := p.components[name]
	if c != nil {
		c.expected = true
	}
	p.mu.Unlock()
	if c == nil {
		return fmt.Errorf("%s was not started", name)
	}
	if c.over() {
		return nil
	}
	_ = c.cmd.Process.Signal(signal)
	select {
	case <-c.exited:
	case <-time.After(30 * time.Second):
		_ = c.cmd.Process.Kill()
		<-c.exited
	}
	return nil
}

// killAll ends everything at once: nothing of it is kept.
func (p *plane) killAll() {
	p.mu.Lock()
	all := make([]*component, 0, len(p.components))
	for _, c := range p.components {
		c.expected = true
		all = append(all, c)
	}
	p.mu.Unlock()
	for _, c := range all {
		_ = c.cmd.Process.Kill()
	}
	for _, c := range all {
		<-c.exited
	}
	for len(p.died) > 0 {
		<-p.died
	}
}

func (p *plane) pids() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	pids := map[string]int{}
	for name, c := range p.components {
		if !c.over() {
			pids[name] = c.cmd.Process.Pid
		}
	}
	return pids
}

func (p *plane) logPath(name string) string { return filepath.Join(p.o.dir, "logs", name+".log") }

// postMortem says why a component ended.
func (p *plane) postMortem(name string) error {
	text := p.tail(name)
	if strings.Contains(text, "address already in use") {
		if name == "kube-apiserver" && p.o.port != 0 {
			return fmt.Errorf("port %d of %s is occupied: choose another by --port, or none for a free one", p.o.port, p.o.bind)
		}
		return fmt.Errorf("%s: %w", name, errPortTaken)
	}
	return fmt.Errorf("%s ended unexpectedly; the end of its log:\n%s", name, text)
}

// tail gives the last lines of a component's log.
func (p *plane) tail(name string) string {
	text, err := os.ReadFile(p.logPath(name))
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	if len(lines) > 20 {
		lines = lines[len(lines)-20:]
	}
	return string(bytes.Join(lines, []byte("\n")))
}
