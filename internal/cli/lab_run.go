package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/cloud"
	"github.com/nodeautoprovision/nap/internal/lab/scenario"
)

func newLabRun(s Streams, dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "run SCENARIO",
		Short: "Play a scenario in the running lab",
		Long: `Play a scenario in the running lab: a text file that applies objects, waits,
breaks things and states what must be true. SCENARIO is a file, or the name of
one that comes with nap: ` + strings.Join(scenario.Stories(), ", ") + `.

The language is described in docs/scenarios.md. Exit code 1 means that something
was not as the scenario says.`,
		Args: exactly("SCENARIO"),
		RunE: func(cmd *cobra.Command, args []string) error {
			story, err := loadScenario(args[0])
			if err != nil {
				return err
			}
			return play(cmd.Context(), s, *dir, story)
		},
	}
}

// loadScenario reads a scenario from a file, or one that comes with nap.
func loadScenario(name string) (*scenario.Scenario, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		story, unknown := scenario.Story(name)
		if unknown != nil {
			return nil, fmt.Errorf("%s is no file, and %w", name, unknown)
		}
		return story, nil
	}
	if err != nil {
		return nil, err
	}
	return scenario.Parse(name, text)
}

// play plays a scenario in the lab in dir.
func play(ctx context.Context, s Streams, dir string, story *scenario.Scenario) error {
	state, err := lab.Inspect(dir)
	if err != nil {
		return err
	}
	if !state.Supervisor.Alive() {
		return fmt.Errorf("the lab in %s is not running (%s); start it with: nap lab up%s", dir, state.Phase, lab.DirFlag(dir))
	}
	config, err := clientcmd.BuildConfigFromFlags("", state.Kubeconfig)
	if err != nil {
		return fmt.Errorf("read the lab's kubeconfig: %w", err)
	}
	config.QPS = -1
	azure, err := cloud.Open(state.Dir)
	if err != nil {
		return err
	}
	defer azure.Close()
	return scenario.Run(ctx, story, scenario.Stage{
		Kubernetes: config,
		Apply:      func(ctx context.Context, manifest []byte) error { return lab.Apply(ctx, config, manifest) },
		Azure:      azure,
		Lab:        killer(state.Dir),
		Out:        s.Out,
	})
}

// killer kills parts of the lab in a folder.
type killer string

// killPatience is how long a part that is being restarted may take to be there
// to be killed.
const killPatience = 30 * time.Second

// Kill implements scenario.Lab.
func (k killer) Kill(ctx context.Context, part string) error {
	ctx, cancel := context.WithTimeout(ctx, killPatience)
	defer cancel()
	for {
		err := lab.Kill(string(k), part)
		if err == nil || !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s did not come back to be killed again: %w", part, err)
		}
	}
}
