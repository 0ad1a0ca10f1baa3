package conformance

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// labVariable tells a program that envtest starts where nap-lab is.
const labVariable = "NAP_LAB_BINARY"

// envtest's programs.
const (
	etcdName      = "etcd"
	apiServerName = "kube-apiserver"
	kubectlName   = "kubectl"
)

// Assets makes the folder of programs that controller-runtime's envtest wants, all of
// them the program that is running, which tells by its name what to play.
func (w *Workspace) Assets() (string, error) {
	dir := filepath.Join(w.Dir, "assets")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the folder of envtest's programs: %w", err)
	}
	for _, name := range []string{etcdName, apiServerName, kubectlName} {
		link := filepath.Join(dir, name)
		if err := errors.Join(os.RemoveAll(link), os.Symlink(w.Runner, link)); err != nil {
			return "", fmt.Errorf("make envtest's program %s: %w", name, err)
		}
	}
	return dir, nil
}

// Play becomes the program of nap-lab that envtest asked for, if the program that is
// running goes by the name of one of them. It returns false otherwise, and does not
// return if it succeeds. args are the program's name and its arguments; the environment
// names nap-lab.
func Play(args, environment []string) (bool, error) {
	var lab string
	for _, variable := range environment {
		if path, ok := strings.CutPrefix(variable, labVariable+"="); ok {
			lab = path
		}
	}
	var command []string
	switch name := filepath.Base(args[0]); name {
	case apiServerName:
		command = append([]string{lab, name}, args[1:]...)
	case etcdName:
		flags, err := etcdFlags(args[1:])
		if err != nil {
			return true, err
		}
		command = append([]string{lab, name}, flags...)
	case kubectlName:
		return true, errors.New("the lab has no kubectl")
	default:
		return false, nil
	}
	return true, syscall.Exec(lab, command, environment)
}

// etcdFlags says in the words of nap-lab's etcd what envtest says in those of etcd: the
// folder of data and the port for clients. What else it says is how nap-lab's runs anyway.
func etcdFlags(args []string) ([]string, error) {
	var dir, port string
	for _, a := range args {
		name, value, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
		switch name {
		case "data-dir":
			dir = value
		case "listen-client-urls":
			u, err := url.Parse(value)
			if err != nil {
				return nil, fmt.Errorf("flag %s: %w", a, err)
			}
			port = u.Port()
		}
	}
	if dir == "" || port == "" {
		return nil, fmt.Errorf("etcd was started with %v: --data-dir and --listen-client-urls with a port are needed", args)
	}
	return []string{"--data-dir=" + dir, "--client-port=" + port}, nil
}
