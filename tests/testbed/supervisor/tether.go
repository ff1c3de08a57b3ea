package supervisor

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// tether becomes another program that the kernel kills when the thread that started us ends.
// The process id stays the same, so signals reach the program itself.
func tether(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("tether: which program?")
	}
	path, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	parent := os.Getppid()
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0); errno != 0 {
		return fmt.Errorf("prctl: %w", errno)
	}
	if os.Getppid() != parent {
		return fmt.Errorf("the parent is gone already")
	}
	return syscall.Exec(path, args, os.Environ())
}
