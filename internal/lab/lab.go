package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// startTimeout bounds the whole start. The control plane takes about 4 s on two
// idle cores; the rest is for machines that are busy or slow.
const startTimeout = 3 * time.Minute

// Lab is one lab of this process. It is made by New and used for one Run.
type Lab struct {
	cfg    Config
	layout layout
	ready  chan struct{}

	// The rest is set by Run.
	versions  versions
	emulation *emulation
	env       Environment
	held      heldPorts
	log       *slog.Logger
	board     *board
	spawner   *spawner
	isStarted atomic.Bool
	fail      context.CancelCauseFunc // ends the lab while it starts

	mu      sync.Mutex
	keepers []*kept // in the order in which they were started
	ending  bool    // nothing is started any more
}

// New checks the configuration and returns a lab that is not running yet.
func New(cfg Config) (*Lab, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	return &Lab{cfg: cfg, layout: layout(cfg.Dir), ready: make(chan struct{})}, nil
}

// Ready is closed once the lab can be used.
func (l *Lab) Ready() <-chan struct{} { return l.ready }

// Environment describes the running lab. It is complete once Ready is closed;
// Log, Ready and NotReady are for services and are nil here.
func (l *Lab) Environment() Environment { return l.env }

// ErrRunning is returned by Run when another process runs a lab in the folder.
var ErrRunning = errors.New("a lab is running here already")

// Run starts the lab and keeps it running until ctx is done, which is no error.
// When it returns, nothing that it started is left. A lab that does not start
// fails with the name of the part that did not and what that logged last.
func (l *Lab) Run(ctx context.Context) error {
	versions, err := binaryVersions(ctx, l.cfg.Binary)
	if err != nil {
		return err
	}
	l.versions = versions
	if err := l.layout.create(); err != nil {
		return err
	}
	unlock, err := l.lock()
	if err != nil {
		return err
	}
	defer unlock()
	previous, err := l.recover()
	if err != nil {
		return err
	}
	free, err := freeBytes(string(l.layout))
	if err == nil {
		err = l.layout.enoughRoom(free)
	}
	if err != nil {
		return err
	}
	defer l.held.releaseAll()
	ca, err := l.prepare(previous)
	if err != nil {
		return err
	}
	logFile, err := os.OpenFile(l.layout.log(supervisorName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("supervisor's log: %w", err)
	}
	defer logFile.Close()
	l.log = slog.New(slog.NewTextHandler(logFile, nil))
	control, err := startControl(l.restart, l.upgrade)
	if err != nil {
		return err
	}
	defer control.close()
	if err := l.env.Network.serve(l.log); err != nil {
		return err
	}
	defer l.env.Network.close()
	l.spawner = newSpawner()
	defer l.spawner.close()
	return l.supervise(ctx, control, ca)
}

// lock makes sure that only one supervisor works in the folder. The lock goes
// with the process, however that ends.
func (l *Lab) lock() (unlock func(), err error) {
	f, err := os.OpenFile(l.layout.lock(), os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("lab folder: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, ErrRunning
		}
		return nil, fmt.Errorf("lock %s: %w", l.layout.lock(), err)
	}
	return func() { f.Close() }, nil
}

// recover looks at what an earlier lab left in the folder, and ends what is left
// of its processes: the lock says that its supervisor is gone.
func (l *Lab) recover() (*State, error) {
	previous, err := readState(l.layout)
	if errors.Is(err, ErrNoLab) {
		return &State{}, nil
	}
	if err != nil {
		return nil, err
	}
	for _, p := range previous.Parts {
		if p.Kind == KindService || !p.Process.Alive() {
			continue
		}
		l.cfg.Progress(fmt.Sprintf("ending %s (pid %d), left over from a lab that was killed", p.Name, p.Process.PID))
		if err := endLeftover(p.Process); err != nil {
			return nil, fmt.Errorf("%s (pid %d) is left over from a lab that was killed and cannot be ended: %w; end it and try again",
				p.Name, p.Process.PID, err)
		}
	}
	return previous, nil
}

// endLeftover kills a process group and waits until its leader is gone.
func endLeftover(id Identity) error {
	if err := id.kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if !id.await(ctx) {
		return errors.New("it still runs 5 s after SIGKILL")
	}
	return nil
}

// versions are those of the nap-lab binary.
type versions struct{ kubernetes, etcd string }

// binaryVersions asks the binary, which also shows that it can be run.
func binaryVersions(ctx context.Context, binary string) (versions, error) {
	out, err := exec.CommandContext(ctx, binary, "version").Output()
	if err != nil {
		return versions{}, fmt.Errorf("run %s version: %w; is it a nap-lab binary for this machine? rebuild it with: nap lab build", binary, err)
	}
	var v versions
	for line := range strings.Lines(string(out)) {
		switch name, version, _ := strings.Cut(strings.TrimSpace(line), " "); name {
		case "kubernetes":
			v.kubernetes = version
		case "etcd":
			v.etcd = version
		}
	}
	if v.kubernetes == "" || v.etcd == "" {
		return versions{}, fmt.Errorf("%s version printed %q, not what a nap-lab binary prints; rebuild it with: nap lab build", binary, out)
	}
	return v, nil
}

// prepare writes everything that the parts read: keys, certificates, kubeconfigs
// and configuration.
func (l *Lab) prepare(previous *State) (*authority, error) {
	v := l.versions
	if old := previous.KubernetesVersion; old != "" && old != v.kubernetes {
		return nil, fmt.Errorf("the data in %s was written by Kubernetes %s, and the control plane is %s now; delete the "+
			"folder or choose another with --dir", l.cfg.Dir, old, v.kubernetes)
	}
	var err error
	if l.emulation, err = newEmulation(v.kubernetes, cmp.Or(l.cfg.Kubernetes, previous.Served)); err != nil {
		return nil, err
	}
	if played := l.emulation.served(); previous.Served != "" && previous.Served != played {
		return nil, fmt.Errorf("the control plane in %s is of Kubernetes %s, and cannot be one of %s: upgrade it with nap lab upgrade, "+
			"or choose another folder with --dir", l.cfg.Dir, previous.Served, played)
	}
	if err := l.layout.rotateLogs(); err != nil {
		return nil, err
	}
	ports, err := l.held.hold(l.cfg.Ports, previous.Ports)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	ca, token, err := pkiFiles(l.layout, l.cfg.ServerName, now)
	if err != nil {
		return nil, err
	}
	l.env = Environment{
		Dir:                  l.cfg.Dir,
		Binary:               l.cfg.Binary,
		Executable:           l.cfg.Executable,
		Start:                l.startProcess,
		Network:              newNetwork(l.layout),
		Kubeconfig:           l.layout.kubeconfig(admin),
		ControllerKubeconfig: l.layout.kubeconfig(nap),
		Server:               fmt.Sprintf("https://127.0.0.1:%d", ports[APIServer]),
		ServerName:           l.cfg.ServerName,
		CA:                   ca.pem,
		ServingCert:          l.layout.pki(servingCert),
		ServingKey:           l.layout.pki(servingKey),
		BootstrapToken:       token,
		KubernetesVersion:    l.emulation.served(),
		Nodes:                l.cfg.Nodes,
		Ports:                ports,
	}
	if err := kubeconfigs(l.layout, ca, l.env.Server, now); err != nil {
		return nil, err
	}
	if l.cfg.Audit != "" {
		if err := writeSecret(l.layout.auditPolicy(), fmt.Appendf(nil, auditPolicy, l.cfg.Audit)); err != nil {
			return nil, fmt.Errorf("audit policy: %w", err)
		}
	}
	return ca, writeComponentConfigs(l.layout, l.env.Network.socket, l.cfg.Profiles)
}
