package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Detach starts the command, which is to run a lab in dir, in a session of its
// own, and returns once that lab is ready. What the command says on its standard
// error goes to a file in the folder and from there to progress. If the command
// ends before, ctx is done, or progress cannot be written to, Detach returns an error
// and nothing is left.
func Detach(ctx context.Context, dir string, cmd *exec.Cmd, progress io.Writer) error {
	l, err := layoutOf(dir)
	if err != nil {
		return err
	}
	if err := l.create(); err != nil {
		return err
	}
	out, err := os.OpenFile(l.detached(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("messages of the detached lab: %w", err)
	}
	defer out.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, nil, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the detached lab: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	over, err := awaitReady(ctx, l, cmd.Process.Pid, ended, progress)
	if err == nil || over {
		return err
	}
	if stop := cmd.Process.Signal(syscall.SIGTERM); stop != nil && !errors.Is(stop, os.ErrProcessDone) {
		return errors.Join(err, stop)
	}
	_ = <-ended // it was told to stop
	return err
}

// awaitReady returns once the lab of the detached process is ready. Over says of an error
// that the process has ended.
func awaitReady(ctx context.Context, l layout, pid int, ended <-chan error, progress io.Writer) (over bool, err error) {
	messages := &follower{path: l.detached()}
	tick := time.NewTicker(askOften)
	defer tick.Stop()
	for {
		select {
		case exit := <-ended:
			return true, errors.Join(fmt.Errorf("the lab did not start: %w", describeExit(exit)), messages.printNew(progress))
		case <-ctx.Done():
			return false, ctx.Err()
		case <-tick.C:
		}
		if err := messages.printNew(progress); err != nil {
			return false, fmt.Errorf("say how the lab starts, which is stopped: %w", err)
		}
		s, err := readState(l)
		if err != nil && !errors.Is(err, ErrNoLab) {
			return false, err
		}
		if err == nil && s.Phase == PhaseReady && s.Supervisor.PID == pid {
			return false, nil
		}
	}
}
