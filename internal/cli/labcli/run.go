package labcli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/lab/cloud"
	"github.com/nodeautoprovision/nap/internal/lab/scenario"
)

func newLabRun(s command.Streams, dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "run SCENARIO",
		Short: "Play a scenario in the running lab",
		Long: `Play a scenario in the running lab: a text file that applies objects, waits,
breaks things and states what must be true. SCENARIO is a file, or the name of
one that comes with nap: ` + strings.Join(scenario.Stories(), ", ") + `.

The language is described in docs/scenarios.md. Exit code 1 means that something
was not as the scenario says.`,
		Args: command.Exactly("SCENARIO"),
		RunE: func(cmd *cobra.Command, args []string) error {
			story, err := loadScenario(args[0])
			if err != nil {
				return err
			}
			return cloud.Play(cmd.Context(), *dir, story, s.Out)
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
