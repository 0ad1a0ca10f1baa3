package controllercli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/cli/command"
)

// roleDefinition is a custom role as "az role definition create" takes it.
type roleDefinition struct {
	Name             string
	IsCustom         bool
	Description      string
	Actions          []string
	AssignableScopes []string
}

func newControllerRole(s command.Streams) *cobra.Command {
	var subscription, name string
	var createPool bool
	cmd := &cobra.Command{
		Use:   "role",
		Short: "Print the Azure role that the controller needs, as a custom role definition",
		Long: `Print a custom role with the actions that the controller needs and no others,
for "az role definition create --role-definition". docs/azure.md says on what it
has to be assigned.`,
		Args: command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := command.CheckSubscription(subscription); err != nil {
				return err
			}
			actions := config.Actions()
			if createPool {
				actions = append(actions, config.ActionCreatePool)
			}
			text, err := json.MarshalIndent(roleDefinition{
				Name: name, IsCustom: true, Description: "What nap's controller needs of Azure", Actions: actions,
				AssignableScopes: []string{"/subscriptions/" + subscription},
			}, "", "  ")
			if err != nil {
				return fmt.Errorf("writing the role: %w", err)
			}
			_, err = fmt.Fprintln(s.Out, string(text))
			return err
		},
	}
	cmd.Flags().StringVar(&subscription, "subscription", "", "id of the subscription in which the role can be assigned")
	cmd.Flags().StringVar(&name, "name", "nap", "name of the role")
	cmd.Flags().BoolVar(&createPool, "create-machines-pool", false,
		"with what NAP_CREATE_MACHINES_POOL=true needs: it lets nap change every agent pool of the cluster")
	return cmd
}
