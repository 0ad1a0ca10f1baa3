package onlab

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nodeautoprovision/nap/internal/lab/cloud"
)

// Controller is a controller that runs on a lab.
type Controller struct {
	cmd *exec.Cmd
	// metrics is where it tells its numbers, ended how it ended, once it has.
	metrics string
	ended   chan error
}

// readyWithin bounds the start of a controller.
const readyWithin = 5 * time.Minute

// Run starts a controller and returns once it is ready. Its log goes to the file. The
// NodePools are the caller's: it makes none of its own. Flags are more than it needs itself.
func (l *Lab) Run(ctx context.Context, engine, log string, flags ...string) (*Controller, error) {
	env, err := cloud.ControllerEnvironment(l.dir)
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	file, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("log of the controller: %w", err)
	}
	defer file.Close()
	c := &Controller{metrics: ports[0]}
	c.cmd = exec.CommandContext(ctx, l.programs.Controller,
		"--engine="+engine, "--kubeconfig="+filepath.Join(l.dir, "kubeconfigs", "nap"),
		"--metrics-bind-address="+ports[0], "--health-probe-bind-address="+ports[1], "--enable-profiling",
		"--disable-leader-election", "--leader-election-namespace=kube-system", "--log-format=text")
	c.cmd.Args = append(c.cmd.Args, flags...)
	c.cmd.Env = append(append(os.Environ(), "DEFAULT_NODE_POOLS=None"), env...)
	c.cmd.Stdout, c.cmd.Stderr = file, file
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the controller: %w", err)
	}
	c.ended = make(chan error, 1)
	go func() { c.ended <- c.cmd.Wait() }()
	late := time.After(readyWithin)
	for {
		if resp, err := get(ctx, "http://"+ports[1]+"/readyz"); err == nil {
			resp.Close()
			return c, nil
		}
		select {
		case err := <-c.ended:
			return nil, fmt.Errorf("the controller ended: %w: %s", err, firstLine(log))
		case <-late:
			_ = c.cmd.Process.Kill()
			return nil, fmt.Errorf("the controller is not ready after %s: %s", readyWithin, firstLine(log))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// firstLine is the first line of a file.
func firstLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return string(line)
}

// Stop ends the controller and returns the peak of its memory in bytes.
func (c *Controller) Stop() (peak int64, err error) {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, fmt.Errorf("stop the controller: %w", err)
	}
	if err := <-c.ended; err != nil {
		return 0, fmt.Errorf("the controller ended: %w", err)
	}
	usage, _ := c.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return usage.Maxrss << 10, nil
}

// Kill ends the controller at once, in the middle of what it does.
func (c *Controller) Kill() {
	_ = c.cmd.Process.Kill() // one that has ended is as good
	_ = <-c.ended            // it was killed
}

// Memory is what of the controller is in memory now, in bytes.
func (c *Controller) Memory() (int64, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(c.cmd.Process.Pid), "statm"))
	if err != nil {
		return 0, fmt.Errorf("the controller's memory: %w", err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64) // the second field is what is resident
	if err != nil {
		return 0, fmt.Errorf("the controller's memory: %w", err)
	}
	return pages * int64(os.Getpagesize()), nil
}

// Peak is the most memory that the controller has had so far, in bytes.
func (c *Controller) Peak() (int64, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(c.cmd.Process.Pid), "status"))
	if err != nil {
		return 0, fmt.Errorf("the controller's memory: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return kb << 10, err
		}
	}
	return 0, errors.New("the system does not tell the controller's peak of memory")
}

// clockTick is the unit of processor time in /proc, which is the same on every Linux.
const clockTick = 10 * time.Millisecond

// CPU is the processor time that the controller has taken so far.
func (c *Controller) CPU() (time.Duration, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(c.cmd.Process.Pid), "stat"))
	if err != nil {
		return 0, fmt.Errorf("the controller's processor time: %w", err)
	}
	// The second field is the program's name in parentheses.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var ticks int64
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("the controller's processor time: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, nil
}

// Requests is how many requests the controller has made to the API server so far.
func (c *Controller) Requests(ctx context.Context) (int, error) {
	body, err := get(ctx, "http://"+c.metrics+"/metrics")
	if err != nil {
		return 0, fmt.Errorf("the controller's metrics: %w", err)
	}
	defer body.Close()
	total := 0.0
	for lines := bufio.NewScanner(body); lines.Scan(); {
		line := lines.Text()
		if !strings.HasPrefix(line, "rest_client_requests_total{") {
			continue
		}
		n, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			return 0, fmt.Errorf("the controller's metrics: %w", err)
		}
		total += n
	}
	return int(total), nil
}

// Profile writes a profile of the processor for so many seconds into a file.
func (c *Controller) Profile(ctx context.Context, seconds int, path string) error {
	return c.save(ctx, fmt.Sprintf("profile?seconds=%d", seconds), path)
}

// Heap writes what is allocated and lives into the file path.
func (c *Controller) Heap(ctx context.Context, path string) error {
	return c.save(ctx, "heap?gc=1", path)
}

// save writes a profile of the controller, as net/http/pprof names it, into a file.
func (c *Controller) save(ctx context.Context, profile, path string) error {
	body, err := get(ctx, fmt.Sprintf("http://%s/debug/pprof/%s", c.metrics, profile))
	if err != nil {
		return fmt.Errorf("profile the controller: %w", err)
	}
	defer body.Close()
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(file, body)
	return err
}

func get(ctx context.Context, url string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return resp.Body, nil
}

// freePorts are addresses of this machine that nothing listens on.
func freePorts(n int) ([]string, error) {
	var out []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		out = append(out, l.Addr().String())
		defer l.Close()
	}
	return out, nil
}
