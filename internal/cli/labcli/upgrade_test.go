package labcli

import (
	"strings"
	"testing"
)

func TestPublishImageAndWindowReachAzure(t *testing.T) {
	azure, dir := azureOnly(t)
	out, errs, code := nap.Run(t, "publish-image", "202607.01.0", "--dir", dir)
	if code != 0 || out != "node image version 202607.01.0 is published\n" {
		t.Errorf("publish-image: %d %q %q", code, out, errs)
	}
	configuration := azure.ClusterID() + "/maintenanceConfigurations/aksManagedNodeOSUpgradeSchedule"
	for _, c := range []struct {
		state, said string
		exists      bool
	}{{"closed", "closed", true}, {"open", "open", true}, {"none", "removed", false}} {
		out, errs, code := nap.Run(t, "window", "node-images", c.state, "--dir", dir)
		if code != 0 || out != "the window for node-images is "+c.said+"\n" || azure.Exists(configuration) != c.exists {
			t.Errorf("window %s: %d %q %q, there is one: %v", c.state, code, out, errs, azure.Exists(configuration))
		}
	}
}

func TestUpgradeCommandsNameWhatIsWrong(t *testing.T) {
	_, dir := azureOnly(t)
	for want, args := range map[string][]string{
		`the simulated Azure refuses: version "new": give one as 202607.01.0`:         {"publish-image", "new"},
		"exactly one VERSION is needed, got 0":                                        {"publish-image"},
		`window "patches": allowed are node-images, kubernetes`:                       {"window", "patches", "open"},
		`window kubernetes "ajar": allowed are open, closed, none`:                    {"window", "kubernetes", "ajar"},
		"one WINDOW (node-images, kubernetes) and one STATE (open, closed, none)":     {"window"},
		"a setting is missing; give at least one as LOG_LEVEL=debug, or --rollback":   {"upgrade-nap"},
		`"debug" is not NAME=VALUE`:                                                   {"upgrade-nap", "debug"},
		`--rollback takes no settings, got ["LOG_LEVEL=debug"]`:                       {"upgrade-nap", "--rollback", "LOG_LEVEL=debug"},
		"the release of the lab in " + dir + " was not upgraded: there is nothing to": {"upgrade-nap", "--rollback"},
		"the lab in " + dir + " has no release to upgrade: ":                          {"upgrade-nap", "LOG_LEVEL=debug"},
		"no lab in " + dir: {"upgrade"},
	} {
		out, errs, code := nap.Run(t, append(args, "--dir", dir)...)
		if code != 1 || out != "" || !strings.HasPrefix(errs, "nap: "+want) {
			t.Errorf("%v: %d %q\nwant one line that begins with %q", args, code, errs, "nap: "+want)
		}
	}
}
