package race

import (
	"bufio"
	"bytes"
	"context"
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

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/api/crds"
	"github.com/nodeautoprovision/nap/internal/controller/rbac"
	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/cloud"
)

// Programs are the executables that are raced.
type Programs struct {
	// Lab is nap-lab, Controller is nap-controller.
	Lab, Controller string
}

// Lab is a running lab without a controller.
type Lab struct {
	programs Programs
	dir      string
	config   *rest.Config
	azure    *cloud.Client
	observer *observer
}

// Start starts a lab in dir.
func Start(ctx context.Context, programs Programs, dir string) (*Lab, error) {
	up := exec.CommandContext(ctx, programs.Lab, "up", "--detach", "--engine", cloud.NoController, "--dir", dir)
	if out, err := up.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("start a lab: %w: %s", err, bytes.TrimSpace(out))
	}
	l := &Lab{programs: programs, dir: dir}
	state, err := lab.Inspect(dir)
	if err != nil {
		return nil, err
	}
	if l.config, err = clientcmd.BuildConfigFromFlags("", state.Kubeconfig); err != nil {
		return nil, fmt.Errorf("read the lab's kubeconfig: %w", err)
	}
	l.config.QPS = -1
	if l.azure, err = cloud.Open(dir); err != nil {
		return nil, err
	}
	if l.observer, err = observe(ctx, l.config); err != nil {
		return nil, err
	}
	return l, l.install(ctx)
}

// install brings the definitions and permissions that the controller of this checkout
// needs, and the NodePool.
func (l *Lab) install(ctx context.Context) error {
	definitions, err := crds.All()
	if err != nil {
		return err
	}
	var manifests [][]byte
	for _, d := range definitions {
		text, err := yaml.Marshal(d)
		if err != nil {
			return fmt.Errorf("write custom resource definition %s: %w", d.Name, err)
		}
		manifests = append(manifests, text)
	}
	user := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "nap"}
	roles, err := rbac.Manifests(metav1.NamespaceSystem, user, rbac.LeaderElection, rbac.BootstrapTokens)
	if err != nil {
		return err
	}
	for _, manifest := range append(manifests, roles, []byte(policy)) {
		if err := lab.Apply(ctx, l.config, manifest); err != nil {
			return err
		}
	}
	return nil
}

// Stop ends the lab.
func (l *Lab) Stop() error {
	l.azure.Close()
	_, err := lab.Down(context.Background(), l.dir)
	return err
}

// controller is a controller that runs on the lab.
type controller struct {
	cmd *exec.Cmd
	// metrics is where it tells its numbers, ended how it ended, once it has.
	metrics string
	ended   chan error
}

// readyWithin bounds the start of a controller.
const readyWithin = time.Minute

// start starts a controller and returns once it is ready. Its log goes to the file.
func (l *Lab) start(ctx context.Context, engine, log string) (*controller, error) {
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
	c := &controller{metrics: ports[0]}
	c.cmd = exec.CommandContext(ctx, l.programs.Controller,
		"--engine="+engine, "--kubeconfig="+filepath.Join(l.dir, "kubeconfigs", "nap"),
		"--metrics-bind-address="+ports[0], "--health-probe-bind-address="+ports[1], "--enable-profiling", "--detailed-metrics",
		"--disable-leader-election", "--leader-election-namespace=kube-system", "--log-format=text")
	// The NodePools are the race's.
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

// stop ends the controller and returns the peak of its memory in bytes.
func (c *controller) stop() (peak int64, err error) {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, fmt.Errorf("stop the controller: %w", err)
	}
	if err := <-c.ended; err != nil {
		return 0, fmt.Errorf("the controller ended: %w", err)
	}
	usage, _ := c.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return usage.Maxrss << 10, nil
}

// clockTick is the unit of processor time in /proc, which is the same on every Linux.
const clockTick = 10 * time.Millisecond

// cpu is the processor time that the controller has taken so far.
func (c *controller) cpu() (time.Duration, error) {
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

// requests is how many requests the controller has made to the API server so far.
func (c *controller) requests(ctx context.Context) (int, error) {
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

// profile writes a profile of the processor for so many seconds into a file.
func (c *controller) profile(ctx context.Context, seconds int, path string) error {
	body, err := get(ctx, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", c.metrics, seconds))
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
