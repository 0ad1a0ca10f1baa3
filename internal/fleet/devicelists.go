package fleet

import "github.com/nodeautoprovision/nap/internal/model"

// listedDevices are the devices that drivers list.
type listedDevices struct {
	// byNode are those of each node, by its name.
	byNode map[string]*nodeDevices
	// none is what a node has that lists none.
	none nodeDevices
}

// nodeDevices are devices of a node.
type nodeDevices struct {
	// byDriver are those that can be allocated, free or not.
	byDriver map[string][]Device
	// allocated counts those of them that claims hold.
	allocated map[string]int64
}

// on are the devices that drivers list on a node.
func (k *deviceKinds) on(n *stateNode) *nodeDevices {
	if k.listed == nil {
		k.listed = k.list()
	}
	if n.node != nil {
		if listed := k.listed.byNode[n.node.Name]; listed != nil {
			return listed
		}
	}
	return &k.listed.none
}

// list reads the slices. A pool counts once all slices of its newest generation are there.
func (k *deviceKinds) list() *listedDevices {
	type poolKey struct{ driver, pool string }
	pools := map[poolKey][]*DeviceSlice{}
	for _, s := range k.slices {
		key := poolKey{s.Driver, s.Pool}
		if known := pools[key]; len(known) > 0 && known[0].Generation > s.Generation {
			continue
		} else if len(known) > 0 && known[0].Generation < s.Generation {
			pools[key] = nil
		}
		pools[key] = append(pools[key], s)
	}
	held := map[DeviceID]bool{}
	for _, c := range k.claims {
		if c.Allocation != nil {
			for _, id := range c.Allocation.Devices {
				held[id] = true
			}
		}
	}
	out := &listedDevices{byNode: map[string]*nodeDevices{}}
	for _, slices := range pools {
		if int64(len(slices)) != slices[0].Slices {
			continue
		}
		for _, s := range slices {
			out.add(s, held)
		}
	}
	return out
}

func (l *listedDevices) add(s *DeviceSlice, held map[DeviceID]bool) {
	if s.Node == "" || len(s.Devices) == 0 {
		return
	}
	n := l.byNode[s.Node]
	if n == nil {
		n = &nodeDevices{byDriver: map[string][]Device{}, allocated: map[string]int64{}}
		l.byNode[s.Node] = n
	}
	n.byDriver[s.Driver] = append(n.byDriver[s.Driver], s.Devices...)
	for i := range s.Devices {
		if held[s.Devices[i].DeviceID] {
			n.allocated[s.Driver]++
		}
	}
}

// awaitsDevices reports whether drivers may still have to list the devices of the node.
func (n *stateNode) awaitsDevices() bool {
	return n.claim != nil && (n.state == model.NodeLaunching || n.state == model.NodeRegistered)
}
