package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
)

// Chart is a release of one of nap's Helm charts, which are within the nap-lab program.
type Chart struct {
	// Chart is the chart's name: "nap" or "nap-crd".
	Chart string `json:"chart"`
	// Name and Namespace are the release's.
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Profile is the name of a file of values that comes with the chart, or empty.
	Profile string `json:"profile,omitempty"`
	// Values count before Variables, these before the profile's values, and those before
	// the chart's own. Variables are those of the controller, as NAME=value; the last of
	// a name counts. They become the chart's settings. What is no setting is left out, but
	// one whose name begins with NAP_ is an error.
	Values    map[string]any `json:"values,omitempty"`
	Variables []string       `json:"variables,omitempty"`
	// Kubernetes is the version of the API server, or empty for the one that Helm takes for
	// granted.
	Kubernetes string `json:"kubernetes,omitempty"`
}

// Render returns the chart's objects as YAML documents. Values that the chart does not
// take are an error which names them.
func (c Chart) Render(ctx context.Context, binary string) ([]byte, error) {
	what, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("values of chart %s: %w", c.Chart, err)
	}
	cmd := exec.CommandContext(ctx, binary, "chart")
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(what), &out, &errs
	if err := cmd.Run(); err != nil {
		if said := strings.TrimSpace(errs.String()); said != "" {
			return nil, fmt.Errorf("chart %s: %s", c.Chart, said)
		}
		return nil, fmt.Errorf("render chart %s with %s: %w", c.Chart, binary, err)
	}
	return out.Bytes(), nil
}
