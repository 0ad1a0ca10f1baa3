package bootdata

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Result is the end of the command by which an extension waits for the provisioning.
type Result struct {
	ExitCode int // of the command: 0 or 1, whatever the provisioning's own was
	Stdout   string
	Stderr   string
}

// status is provision.json as the provisioning scripts write it. Every value is a text.
type status struct {
	ExitCode                string
	Output                  string
	Error                   string
	ExecDuration            string
	KernelStartTime         string
	CloudInitLocalStartTime string
	CloudInitStartTime      string
	CloudFinalStartTime     string
	NetworkdStartTime       string
	CSEStartTime            string
	GuestAgentStartTime     string
	SystemdSummary          string
	BootDatapoints          struct {
		KernelStartTime, CSEStartTime, GuestAgentStartTime, KubeletStartTime string
	}
}

// earlyStatus is provision.json as the node's program writes it when it gives up.
type earlyStatus struct {
	ExitCode, Error, Output string
}

// shownOutput bounds the output that is shown, in bytes from its end.
const shownOutput = 3000

// End is the result of a provisioning: failure nil for success. The times are those of the
// machine's boot and of its kubelet's start, zero for a kubelet that was not started.
func End(failure *Failure, booted, kubelet, now time.Time) Result {
	if failure != nil && failure.early {
		s := earlyStatus{ExitCode: strconv.Itoa(failure.ExitCode), Error: failure.Reason}
		return result(s, failure.ExitCode, s.Error, "")
	}
	s := status{ExitCode: "0", ExecDuration: strconv.Itoa(int(now.Sub(booted).Seconds()))}
	code := 0
	s.Output = "API server connection check code: 0\nkubelet is still activating, continuing anyway...\nCustom script finished.\n"
	if failure != nil {
		code = failure.ExitCode
		s.ExitCode, s.Output = strconv.Itoa(code), failure.Reason+"\n"
		s.Output = s.Output[max(0, len(s.Output)-shownOutput):]
	}
	at := systemdTime(booted)
	s.KernelStartTime, s.CloudInitLocalStartTime, s.CloudInitStartTime, s.CloudFinalStartTime = at, at, at, at
	s.NetworkdStartTime, s.GuestAgentStartTime = at, at
	s.CSEStartTime = booted.UTC().Format(time.UnixDate)
	s.SystemdSummary = "Startup finished in 1s (kernel) + 1s (userspace) = 2s"
	s.BootDatapoints.KernelStartTime, s.BootDatapoints.CSEStartTime, s.BootDatapoints.GuestAgentStartTime = at, s.CSEStartTime, at
	s.BootDatapoints.KubeletStartTime = systemdTime(kubelet)
	return result(s, code, "", s.Output)
}

// systemdTime is a time as systemctl shows it.
func systemdTime(t time.Time) string {
	if t.IsZero() {
		return "n/a"
	}
	return t.UTC().Format("Mon 2006-01-02 15:04:05 MST")
}

// result is what the command prints and ends with.
func result(status any, code int, reason, output string) Result {
	text, err := json.Marshal(status)
	if err != nil {
		return Result{ExitCode: 1, Stderr: err.Error()} // cannot happen: texts alone
	}
	r := Result{Stdout: string(text) + "\n"}
	if code != 0 {
		r.ExitCode = 1
		r.Stderr = fmt.Sprintf("{\"level\":\"ERROR\",\"msg\":\"aks-node-controller failed\",\"error\":%q}\n",
			fmt.Sprintf("provision failed: exitCode=%d error=%s output=%q", code, reason, output))
	}
	return r
}
