package controllercli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/azure/config"
)

func TestRoleIsWhatAzureTakes(t *testing.T) {
	const subscription = "00000000-0000-0000-0000-000000000001"
	out, errs, code := program.Run(t, "role", "--subscription", subscription)
	var role struct {
		Name, Description         string
		IsCustom                  bool
		Actions, AssignableScopes []string
	}
	if err := json.Unmarshal([]byte(out), &role); err != nil || code != 0 {
		t.Fatalf("exit code %d, %v, %s", code, err, errs)
	}
	if role.Name != "nap" || !role.IsCustom || !slices.Equal(role.Actions, config.Actions()) ||
		!slices.Equal(role.AssignableScopes, []string{"/subscriptions/" + subscription}) {
		t.Errorf("printed %+v", role)
	}
	out, errs, code = program.Run(t, "role", "--subscription", subscription, "--create-machines-pool")
	if err := json.Unmarshal([]byte(out), &role); err != nil || code != 0 ||
		!slices.Equal(role.Actions, append(config.Actions(), config.ActionCreatePool)) {
		t.Errorf("with the pool: %+v, %v, %s", role, err, errs)
	}
	if _, errs, code := program.Run(t, "role", "--subscription", "mine"); code != 1 || !strings.Contains(errs, `--subscription: got "mine", must be a UUID`) {
		t.Errorf("exit code %d, %s", code, errs)
	}
}
