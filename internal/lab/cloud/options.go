package cloud

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/skutable"
)

// validate refuses what is not allowed, by name, value and allowed values.
func (o *Options) validate(engine string) error {
	known, err := skutable.Load()
	if err != nil {
		return err
	}
	for _, choice := range []struct {
		name, value string
		allowed     []string
	}{
		{"provision mode", o.ProvisionMode, ProvisionModes()},
		{"network", o.Network, armsim.Networks()},
		{"outbound", o.Outbound, armsim.Outbounds()},
		{"default node pools", o.DefaultNodePools, []string{defaultsAuto, defaultsNone}},
		{"release", o.Release, Releases()},
		{"region", o.Region, known.Regions()},
	} {
		if choice.value != "" && !slices.Contains(choice.allowed, choice.value) {
			return notAllowed(choice.name, choice.value, choice.allowed)
		}
	}
	switch {
	case !slices.Contains(Engines(), engine):
		return notAllowed("engine", engine, Engines())
	case o.Speed < 0 || o.Speed > maxSpeed:
		return fmt.Errorf("speed %v: allowed are 1 (as the real Azure) to %d times faster", o.Speed, maxSpeed)
	case o.Replicas < 0 || o.Replicas > maxReplicas:
		return fmt.Errorf("replicas %d: allowed are 1 to %d", o.Replicas, maxReplicas)
	case o.Release == releaseNone && engine == NoController:
		return fmt.Errorf("release %s has a system node for nap enable, and engine %s has none: leave out one of them", releaseNone, NoController)
	}
	return nil
}

func notAllowed(name, value string, allowed []string) error {
	return fmt.Errorf("%s %q: allowed are %s", name, value, strings.Join(allowed, ", "))
}
