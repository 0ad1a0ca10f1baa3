package lab

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// control is how other processes ask the supervisor for something: HTTP on
// loopback, with a token that only the owner of the folder can read. A TCP port
// rather than a socket in the folder, because the path of a socket may have no
// more than 107 bytes.
type control struct {
	token    string
	listener net.Listener
	server   *http.Server
	done     chan struct{}
}

// startControl listens, and serves requests to restart a part and to upgrade the control
// plane with the given functions until close.
func startControl(restart func(ctx context.Context, part string) error,
	upgrade func(ctx context.Context, version string) (string, error)) (*control, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("control port: %w", err)
	}
	c := &control{token: rand.Text(), listener: listener, done: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /restart/{part}", func(w http.ResponseWriter, r *http.Request) {
		if err := restart(r.Context(), r.PathValue("part")); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
		}
	})
	mux.HandleFunc("POST /upgrade", func(w http.ResponseWriter, r *http.Request) {
		version, err := upgrade(r.Context(), r.URL.Query().Get("version"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		_, _ = io.WriteString(w, version) // a client that has gone has no use for it
	})
	c.server = &http.Server{Handler: c.authenticated(mux), ReadHeaderTimeout: 5 * time.Second}
	go func() {
		defer close(c.done)
		_ = c.server.Serve(listener) // always ErrServerClosed, or the listener is gone and so are we
	}()
	return c, nil
}

func (c *control) authenticated(next http.Handler) http.Handler {
	want := []byte("Bearer " + c.token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			http.Error(w, "wrong token", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (c *control) port() int { return c.listener.Addr().(*net.TCPAddr).Port }

func (c *control) close() {
	_ = c.server.Close()
	<-c.done
}

// restartTimeout bounds how long a restart may take until the part is ready.
const restartTimeout = time.Minute

// Restart ends a part of the lab in dir and returns once it is ready again. An
// unknown part is an error that names the parts there are.
func Restart(ctx context.Context, dir, part string) error {
	s, err := Inspect(dir)
	if err != nil {
		return err
	}
	if !s.Supervisor.Alive() {
		return notRunning(s, dir)
	}
	if s.Part(part) == nil {
		return unknownPart(part, s.PartNames())
	}
	_, err = s.ask(ctx, "restart/"+part, restartTimeout)
	return err
}

// Upgrade raises the Kubernetes version of the control plane of the lab in dir by one minor
// version, to the one that is named or, where it is empty, to the next, and returns what it
// is then, as 1.37.1. The nodes keep theirs.
func Upgrade(ctx context.Context, dir, version string) (string, error) {
	s, err := Inspect(dir)
	if err != nil {
		return "", err
	}
	if !s.Supervisor.Alive() {
		return "", notRunning(s, dir)
	}
	parts := len(components()) - 1
	return s.ask(ctx, "upgrade?version="+url.QueryEscape(version), time.Duration(parts)*restartTimeout)
}

func notRunning(s *State, dir string) error {
	return fmt.Errorf("the lab in %s is not running (%s); start it with: nap lab up%s", s.Dir, s.Phase, DirFlag(dir))
}

// ask asks the supervisor for something that takes some time at most, and returns its answer.
func (s *State) ask(ctx context.Context, what string, most time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, most+5*time.Second)
	defer cancel()
	address := "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(s.ControlPort)) + "/" + what
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+s.ControlToken)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", fmt.Errorf("ask the lab in %s: %w", s.Dir, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err != nil {
		return "", fmt.Errorf("the lab's answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return "", errors.New(strings.TrimSpace(string(text)))
	}
	return string(text), nil
}

func unknownPart(name string, known []string) error {
	return fmt.Errorf("unknown component %q; this lab has: %s", name, strings.Join(known, ", "))
}
