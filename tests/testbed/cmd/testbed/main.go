// The supervisor: standard library only, so it builds in a second and starts at once.
package main

import (
	"os"

	"interlock.dev/testbed/supervisor"
)

func main() { os.Exit(supervisor.Main(os.Args[1:])) }
