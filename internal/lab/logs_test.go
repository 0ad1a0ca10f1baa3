package lab

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func appendLog(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func aLabWithLogs(t *testing.T) layout {
	t.Helper()
	l := newFolder(t)
	if err := writeState(l, &State{Phase: PhaseStopped, Parts: []PartState{{Name: Etcd}, {Name: Scheduler}}}); err != nil {
		t.Fatal(err)
	}
	appendLog(t, l.log(Etcd), "one\ntwo\nthree\n")
	appendLog(t, l.log(supervisorName), "hello\n")
	return l
}

func TestLogsOptions(t *testing.T) {
	l := aLabWithLogs(t)
	tests := map[string]struct {
		options LogOptions
		want    string
	}{
		"one, whole":       {LogOptions{Part: Etcd, Tail: -1}, "one\ntwo\nthree\n"},
		"one, its end":     {LogOptions{Part: Etcd, Tail: 2}, "two\nthree\n"},
		"one, nothing":     {LogOptions{Part: Etcd, Tail: 0}, ""},
		"one, never wrote": {LogOptions{Part: Scheduler, Tail: -1}, ""},
		"all": {LogOptions{Tail: 1}, "etcd                     | three\n" +
			"supervisor               | hello\n"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := Logs(t.Context(), string(l), tc.options, &out); err != nil {
				t.Fatal(err)
			}
			if out.String() != tc.want {
				t.Errorf("printed %q, want %q", out.String(), tc.want)
			}
		})
	}
}

func TestLogsOfUnknownPartNameKnownParts(t *testing.T) {
	l := aLabWithLogs(t)
	err := Logs(t.Context(), string(l), LogOptions{Part: "kubelet"}, os.Stdout)
	want := `unknown component "kubelet"; this lab has: etcd, kube-scheduler, supervisor`
	if err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}

// transcript is a writer that can be read while it is written.
type transcript struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *transcript) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *transcript) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func TestFollowLogsByLinesAcrossRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := aLabWithLogs(t)
		out := &transcript{}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Logs(ctx, string(l), LogOptions{Part: Etcd, Tail: 1, Follow: true}, out) }()
		step := func(want string) {
			t.Helper()
			time.Sleep(time.Second)
			synctest.Wait()
			if got := out.String(); got != want {
				t.Errorf("printed %q, want %q", got, want)
			}
		}
		step("three\n")
		appendLog(t, l.log(Etcd), "four\nfi")
		step("three\nfour\n")
		appendLog(t, l.log(Etcd), "ve\n")
		step("three\nfour\nfive\n")
		if err := l.rotateLogs(); err != nil {
			t.Error(err)
		}
		step("three\nfour\nfive\n")
		appendLog(t, l.log(Etcd), "again\n")
		step("three\nfour\nfive\nagain\n")
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Logs = %v after Ctrl-C, want nil", err)
		}
	})
}

func TestLastLogLinesOfPanicOrExit(t *testing.T) {
	twelve := "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n"
	for name, tc := range map[string]struct{ log, want string }{
		"nothing": {"", ""},
		"short":   {"a\nb\n", "  a\n  b"},
		"long":    {twelve, "  3\n  4\n  5\n  6\n  7\n  8\n  9\n  10\n  11\n  12"},
		"a panic": {"up\npanic: invalid database\n" + twelve, "  panic: invalid database\n  1\n  2\n  3\n  4\n  5\n  6\n  7\n  8\n  9"},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir() + "/log"
			appendLog(t, path, tc.log)
			if got := lastWords(path); got != tc.want {
				t.Errorf("last words %q, want %q", got, tc.want)
			}
		})
	}
	if got := lastWords(t.TempDir() + "/none"); got != "" {
		t.Errorf("last words of a part that never logged: %q", got)
	}
}
