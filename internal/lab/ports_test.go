package lab

import (
	"net"
	"strings"
	"testing"
)

func TestPortsStayWhileFree(t *testing.T) {
	first, err := choosePorts(map[string]int{"spare": 0}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, port := range first {
		if port < firstPort || port > lastPort {
			t.Errorf("%s got port %d, outside of %d to %d", name, port, firstPort, lastPort)
		}
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	first["spare"] = taken.Addr().(*net.TCPAddr).Port

	second, err := choosePorts(map[string]int{"spare": 0}, first)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range components() {
		if second[name] != first[name] {
			t.Errorf("%s moved from port %d to %d", name, first[name], second[name])
		}
	}
	if second["spare"] == first["spare"] {
		t.Errorf("spare kept port %d, which is in use", first["spare"])
	}
}

func TestPortsAreDistinct(t *testing.T) {
	ports, err := choosePorts(map[string]int{"a": 0, "b": 0, "c": 0}, map[string]int{"a": 20001, "b": 20001})
	if err != nil {
		t.Fatal(err)
	}
	owner := map[int]string{}
	for name, port := range ports {
		if other, ok := owner[port]; ok {
			t.Errorf("%s and %s share port %d", name, other, port)
		}
		owner[port] = name
	}
}

func TestFixedPortInUseIsRefused(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	if _, err := choosePorts(map[string]int{APIServer: port}, nil); err == nil || !strings.Contains(err.Error(), APIServer) {
		t.Errorf("error = %v, want one that names %s", err, APIServer)
	}
	if _, err := choosePorts(map[string]int{"a": port, "b": port}, nil); err == nil || !strings.Contains(err.Error(), "both a and b") {
		t.Errorf("error = %v, want one that names a and b", err)
	}
}

func TestPortsAreHeldUntilComponentsStart(t *testing.T) {
	var one, other heldPorts
	defer one.releaseAll()
	defer other.releaseAll()
	first, err := one.hold(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := other.hold(nil, first) // the ports of the one, if they are free
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range components() {
		if first[name] == second[name] {
			t.Errorf("%s has port %d in both labs", name, first[name])
		}
	}
	one.release(APIServer)
	if !free(first[APIServer]) || free(first[ControllerManager]) {
		t.Error("the port that was released is free, and no other")
	}
	if _, err := other.hold(map[string]int{APIServer: first[ControllerManager]}, nil); err == nil {
		t.Error("a fixed port is taken from the lab that holds it")
	}
}
