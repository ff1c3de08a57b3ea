// Package supervisor starts a control plane, waits until it is really ready, prints what a
// client needs, and takes it down again: on a signal, when its input is closed, or when its
// parent is gone. It needs nothing but the standard library and the components' binaries.
package supervisor

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const usage = `usage:
  testbed up [flags]          start a control plane and stay; one JSON line on stdout says how to reach it
  testbed seed DIR            write what etcd holds once kube-apiserver has made its own objects; "up" begins with
                              the folder "seed" beside the components, where there is one
  testbed tether CMD [ARG]... become CMD, killed by the kernel when the thread that started it ends

commands on the input of "up", one a line, each answered by one JSON line:
  stop|kill|start|pause|resume COMPONENT    SIGTERM and wait | SIGKILL and wait | start again | SIGSTOP | SIGCONT
  user NAME [GROUP,GROUP]                   make a user with a client certificate; answers its kubeconfig
  token NAME [GROUP,GROUP]                  answers the bearer token of one of the fixed users
The end of the input ends the control plane.
`

// Main runs the command line and returns the exit code.
func Main(args []string) int {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return 2
	}
	switch args[0] {
	case "up":
		return mainUp(args[1:])
	case "seed":
		return mainSeed(args[1:])
	case "tether":
		if err := tether(args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, "testbed:", err)
			return 127
		}
		return 0
	default:
		fmt.Fprintf(os.Stderr, "testbed: unknown command %q\n%s", args[0], usage)
		return 2
	}
}

// options of `testbed up`.
type options struct {
	dir           string        // everything this control plane writes
	bin           string        // where the components are
	keep          bool          // leave dir behind
	bind          string        // address that the API server listens on
	advertise     string        // address that it names as its own
	servicePath   bool          // dial a webhook's Service by its EndpointSlices
	podCIDR       string        // addresses of fake pods
	podReadyAfter time.Duration // a fake pod's time from scheduled to ready
	answeringPods bool          // fake pods answer, through a proxy
	audit         bool          // write dir/audit.log
	port          int           // of the API server; 0 = a free one
	startTimeout  time.Duration
	detached      bool // do not end with the input or the parent
	quiet         bool // no progress on stderr
	apiserverArgs []string
}

func parse(args []string) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("testbed up", flag.ContinueOnError)
	flags.StringVar(&o.dir, "dir", "", "directory for data, logs and kubeconfigs (default: a temporary one)")
	flags.StringVar(&o.bin, "bin", "", "directory of the components (default: where testbed itself is)")
	flags.BoolVar(&o.keep, "keep", false, "leave the directory behind at the end")
	flags.StringVar(&o.bind, "bind", "127.0.0.1", "address that the API server listens on")
	flags.StringVar(&o.advertise, "advertise", "", "address that the API server names as its own (default: 10.99.0.1; never a loopback one)")
	flags.BoolVar(&o.servicePath, "service-path", false, "dial webhooks through the EndpointSlices of their Service")
	flags.StringVar(&o.podCIDR, "pod-cidr", "10.244.0.0/16", "addresses of fake pods")
	flags.DurationVar(&o.podReadyAfter, "pod-ready-after", 2*time.Second, "time that a fake pod takes to be ready")
	flags.BoolVar(&o.answeringPods, "answering-pods", false, "offer a proxy to the fake pods, which answer as Kong does")
	flags.BoolVar(&o.audit, "audit", false, "write an audit log of level Metadata to DIR/audit.log")
	flags.IntVar(&o.port, "port", 0, "port of the API server (default: a free one)")
	flags.DurationVar(&o.startTimeout, "start-timeout", 90*time.Second, "give up when not ready by then")
	flags.BoolVar(&o.detached, "detached", false, "stay when the input ends or the parent is gone")
	flags.BoolVar(&o.quiet, "quiet", false, "no progress on stderr")
	flags.Func("apiserver-arg", "a further flag for kube-apiserver (may be repeated)", func(v string) error {
		o.apiserverArgs = append(o.apiserverArgs, v)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return o, o.complete()
}

// complete fills in what was not given.
func (o *options) complete() error {
	if o.advertise == "" {
		o.advertise = "10.99.0.1"
	}
	if o.bin == "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		o.bin = filepath.Dir(self)
	}
	var err error
	if o.dir == "" {
		o.dir, err = os.MkdirTemp("", "interlock-testbed-")
	} else {
		if entries, readErr := os.ReadDir(o.dir); readErr == nil && len(entries) > 0 {
			return fmt.Errorf("--dir %s is not empty: a control plane starts from nothing; name another directory or remove it", o.dir)
		}
		err = os.MkdirAll(o.dir, 0o700)
	}
	if err != nil {
		return err
	}
	o.dir, err = filepath.Abs(o.dir)
	return err
}

func mainUp(args []string) int {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err == nil {
		err = up(context.Background(), o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testbed:", strings.TrimSpace(err.Error()))
		return 1
	}
	return 0
}
