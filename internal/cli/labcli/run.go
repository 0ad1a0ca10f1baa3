package labcli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/lab/cloud"
	"github.com/nodeautoprovision/nap/internal/lab/realcluster"
	"github.com/nodeautoprovision/nap/internal/lab/scenario"
)

func newLabRun(s command.Streams, dir *string) *cobra.Command {
	var kubeconfig, kubeContext string
	var options realcluster.Options
	cmd := &cobra.Command{
		Use:   "run SCENARIO",
		Short: "Play a scenario in the running lab, or on another cluster",
		Long: `Play a scenario in the running lab: a text file that applies objects, waits,
breaks things and states what must be true. SCENARIO is a file, or the name of
one that comes with nap:
` + storyLines() + `

The language is described in docs/scenarios.md. Exit code 1 means that something
was not as the scenario says.

With --context the scenario plays on that cluster instead, with the same
assertions and without faults and kills. nap must run there, and the environment
must say which cluster it is: CLUSTER_NAME, ARM_RESOURCE_GROUP,
AZURE_SUBSCRIPTION_ID, and how to sign in. It buys machines, which cost money.
It refuses a cluster with NodeClaims, or with objects that it would overwrite,
and gives everything back at the end. docs/real-cluster.md is the walk.`,
		Args: command.Exactly("SCENARIO"),
		RunE: func(cmd *cobra.Command, args []string) error {
			story, err := loadScenario(args[0])
			if err != nil {
				return err
			}
			if kubeContext == "" {
				for _, name := range []string{"kubeconfig", "patience", "keep"} {
					if cmd.Flags().Changed(name) {
						return fmt.Errorf("--%s is for other clusters than the lab's: say which with --context", name)
					}
				}
				return cloud.Play(cmd.Context(), *dir, story, s.Out)
			}
			config, err := command.ClusterConfig(kubeconfig, kubeContext)
			if err != nil {
				return err
			}
			azure, err := realcluster.Open(cmd.Context(), os.LookupEnv, os.ReadFile)
			if err != nil {
				return err
			}
			return realcluster.Play(cmd.Context(), config, azure, story, options, s.Out)
		},
	}
	cmd.Flags().StringVar(&kubeContext, "context", "", "context of the kubeconfig of another cluster to play on")
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig file of that cluster; default: $KUBECONFIG or ~/.kube/config")
	cmd.Flags().Float64Var(&options.Patience, "patience", defaultPatience, "how many times longer than in the lab everything may take there")
	cmd.Flags().BoolVar(&options.Keep, "keep", false, "leave there what the scenario has applied")
	return cmd
}

// storyLines are the names of the stories that come with nap, in lines that fit a screen.
func storyLines() string {
	const columns = 76
	text, line := "", " "
	for i, name := range scenario.Stories() {
		if i > 0 {
			line += ","
		}
		if len(line)+1+len(name) > columns {
			text, line = text+line+"\n", " "
		}
		line += " " + name
	}
	return text + line
}

// defaultPatience is for a real Azure: the lab's is twenty times faster, and the times
// of stories are generous.
const defaultPatience = 5

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
