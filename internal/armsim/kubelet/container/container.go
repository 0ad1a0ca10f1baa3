// Package container says how the containers of simulated nodes behave: what their
// commands, probes and preStop hooks come to where nothing is executed.
//
// A container listens on the ports that it declares, and a command does what the few
// programs with a plain meaning say: sleep, true, false, exit. Every other command runs on.
package container

import (
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// End is how a command ends.
type End struct {
	// After is how long it runs.
	After time.Duration
	// ExitCode is 0 to 255.
	ExitCode int32
}

// EndOf returns how the pod's container ends by its command, and false if it runs on. A
// pod with more than one container runs on: they would end one by one.
func EndOf(pod *corev1.Pod) (End, bool) {
	if len(pod.Spec.Containers) != 1 {
		return End{}, false
	}
	c := pod.Spec.Containers[0]
	return endOf(append(append([]string{}, c.Command...), c.Args...))
}

// endOf reads a command: a program with its arguments, or a shell's "-c" with a script.
func endOf(command []string) (End, bool) {
	if len(command) == 0 {
		return End{}, false
	}
	if len(command) >= 3 && strings.HasSuffix(command[0], "sh") && strings.HasPrefix(command[1], "-") && strings.HasSuffix(command[1], "c") {
		return endOfScript(command[2])
	}
	end, known := endOfProgram(command)
	return end, known
}

// endOfScript reads programs separated by ";", "&&" or line ends. One that is not known
// makes the script run on.
func endOfScript(script string) (End, bool) {
	var total End
	lines := strings.FieldsFunc(strings.ReplaceAll(script, "&&", ";"), func(r rune) bool { return r == ';' || r == '\n' })
	for _, line := range lines {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		end, known := endOfProgram(words)
		if !known {
			return End{}, false
		}
		total.After += end.After
		total.ExitCode = end.ExitCode
		if words[0] == "exit" {
			break
		}
	}
	return total, len(lines) > 0
}

func endOfProgram(words []string) (End, bool) {
	switch name := words[0][strings.LastIndex(words[0], "/")+1:]; {
	case name == "true" && len(words) == 1:
		return End{}, true
	case name == "false" && len(words) == 1:
		return End{ExitCode: 1}, true
	case name == "sleep" && len(words) == 2:
		seconds, err := strconv.ParseUint(words[1], 10, 31)
		return End{After: time.Duration(seconds) * time.Second}, err == nil
	case name == "exit" && len(words) == 2:
		code, err := strconv.ParseUint(words[1], 10, 8)
		return End{ExitCode: int32(code)}, err == nil
	}
	return End{}, false
}

// PreStop is how long the preStop hooks of the pod take, of which the longest counts: the
// containers are stopped side by side. Hooks by HTTP take no time.
func PreStop(pod *corev1.Pod) time.Duration {
	var longest time.Duration
	for _, c := range pod.Spec.Containers {
		if c.Lifecycle == nil || c.Lifecycle.PreStop == nil {
			continue
		}
		hook := c.Lifecycle.PreStop
		if hook.Sleep != nil {
			longest = max(longest, time.Duration(hook.Sleep.Seconds)*time.Second)
		}
		if hook.Exec != nil {
			if end, known := endOf(hook.Exec.Command); known {
				longest = max(longest, end.After)
			}
		}
	}
	return longest
}

// ReadyAfter is how long after its start a container passes its readiness probe, and
// false if it never does. Without a probe it is ready at once.
func ReadyAfter(c corev1.Container) (time.Duration, bool) {
	p := c.ReadinessProbe
	if p == nil {
		return 0, true
	}
	after := time.Duration(p.InitialDelaySeconds) * time.Second
	switch {
	case p.HTTPGet != nil:
		return after, listens(c, p.HTTPGet.Port)
	case p.TCPSocket != nil:
		return after, listens(c, p.TCPSocket.Port)
	case p.GRPC != nil:
		return after, listens(c, intstr.FromInt32(p.GRPC.Port))
	case p.Exec != nil:
		end, known := endOf(p.Exec.Command)
		return after, !known || end.ExitCode == 0
	}
	return after, true
}

// listens reports whether the container declares the port, by number or by name.
func listens(c corev1.Container, port intstr.IntOrString) bool {
	for _, p := range c.Ports {
		if port.Type == intstr.String && p.Name == port.StrVal || port.Type == intstr.Int && p.ContainerPort == port.IntVal {
			return true
		}
	}
	return false
}
