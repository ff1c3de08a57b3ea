// The supervisor alone, for a control plane whose binaries are there already
// (KUBEBUILDER_ASSETS): standard library only, so it builds in a second.
package main

import (
	"os"

	"interlock.dev/testbed/supervisor"
)

func main() { os.Exit(supervisor.Main(os.Args[1:])) }
