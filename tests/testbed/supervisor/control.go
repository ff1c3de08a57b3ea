package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

// readLines hands on the lines of the input; its end cancels.
func readLines(in io.Reader, lines chan<- string, end context.CancelCauseFunc) {
	scanner := bufio.NewScanner(in)
	for scanner.Scan() {
		if line := strings.TrimSpace(scanner.Text()); line != "" {
			lines <- line
		}
	}
	end(errors.New("the input was closed"))
}

// answer to one command; one line of JSON.
type answer struct {
	Command    string `json:"command"`
	Error      string `json:"error,omitempty"`
	Kubeconfig string `json:"kubeconfig,omitempty"`
	Token      string `json:"token,omitempty"`
	Pid        int    `json:"pid,omitempty"`
}

// serve carries out commands until it is asked to end.
func (p *plane) serve(ctx context.Context, commands <-chan string) error {
	out := json.NewEncoder(os.Stdout)
	for {
		select {
		case <-ctx.Done():
			return nil
		case name := <-p.died:
			return p.postMortem(name)
		case line := <-commands:
			a := answer{Command: line}
			if err := p.obey(ctx, line, &a); err != nil {
				a.Error = err.Error()
			}
			if err := out.Encode(a); err != nil {
				return err
			}
		}
	}
}

func (p *plane) obey(ctx context.Context, line string, a *answer) error {
	words := strings.Fields(line)
	if len(words) < 2 {
		return fmt.Errorf("a command has a verb and a name, for example: stop kube-apiserver")
	}
	verb, name := words[0], words[1]
	switch verb {
	case "stop":
		return p.halt(name, syscall.SIGTERM)
	case "kill":
		return p.halt(name, syscall.SIGKILL)
	case "pause":
		return p.signal(name, syscall.SIGSTOP)
	case "resume":
		return p.signal(name, syscall.SIGCONT)
	case "start":
		if err := p.startAgain(ctx, name); err != nil {
			return err
		}
		a.Pid = p.pids()[name]
		return nil
	case "user":
		var groups []string
		if len(words) > 2 {
			groups = strings.Split(words[2], ",")
		}
		path, err := p.addUser(name, groups)
		a.Kubeconfig = path
		return err
	case "token":
		for _, u := range fixedUsers {
			if u.name == name {
				a.Token = token(name)
				return nil
			}
		}
		return fmt.Errorf("no fixed user %q", name)
	default:
		return fmt.Errorf("unknown verb %q: stop, kill, start, pause, resume, user or token", verb)
	}
}

func (p *plane) signal(name string, signal syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.components[name]
	if c == nil || c.over() {
		return fmt.Errorf("%s does not run", name)
	}
	return c.cmd.Process.Signal(signal)
}

// startAgain starts a component that was stopped, on the ports it had. Those drain for some
// seconds after a graceful end, so a start that finds them taken is tried again.
func (p *plane) startAgain(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, p.o.startTimeout)
	defer cancel()
	for {
		if err := p.launch(name); err != nil {
			return err
		}
		if name != "kube-apiserver" {
			return nil
		}
		err := p.await(ctx, "kube-apiserver is ready", p.api.readyz)
		if !errors.Is(err, errPortTaken) {
			return err
		}
		if err := os.Truncate(p.logPath(name), 0); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(200 * time.Millisecond):
		}
	}
}
