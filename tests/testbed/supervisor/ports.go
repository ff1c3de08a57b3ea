package supervisor

import (
	"fmt"
	"net"
)

// ports of one control plane, all chosen by the kernel.
type ports struct {
	apiserver, etcd, etcdPeer, kwok int
}

// choosePorts asks for free ports. They are all held until the last is known, so that they
// differ; somebody else may still take one before its component binds it (see errPortTaken).
func choosePorts(bind string, apiserver int) (ports, error) {
	var p ports
	var held []net.Listener
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	for _, want := range []struct {
		port    *int
		address string
		fixed   int
	}{
		{&p.apiserver, bind, apiserver},
		{&p.etcd, "127.0.0.1", 0},
		{&p.etcdPeer, "127.0.0.1", 0},
		{&p.kwok, "127.0.0.1", 0},
	} {
		l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", want.address, want.fixed))
		if err != nil {
			if want.fixed != 0 {
				return p, fmt.Errorf("port %d of %s is occupied (%w): choose another by --port, or none for a free one", want.fixed, want.address, err)
			}
			return p, fmt.Errorf("no free port on %s: %w", want.address, err)
		}
		held = append(held, l)
		*want.port = l.Addr().(*net.TCPAddr).Port
	}
	return p, nil
}
