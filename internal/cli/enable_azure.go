package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/nodeautoprovision/nap/internal/azure/setup"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
)

// makeAzure makes what nap needs in Azure, step by step; with --dry-run it says what there
// is, and how to make the rest.
func (i *installation) makeAzure(ctx context.Context) error {
	steps := i.plan.Steps()
	for n, step := range steps {
		there, err := step.There(ctx)
		if err != nil {
			return i.failed(steps[n:], fmt.Errorf("look at %s: %w", step.What, brief(err)), err)
		}
		if i.op.dryRun {
			i.describe(step, there)
			continue
		}
		if there {
			i.op.say("%s: there", step.What)
			continue
		}
		err = step.Make(ctx)
		if i.noMachines(step, err) {
			continue
		}
		if err != nil {
			return i.failed(steps[n:], fmt.Errorf("make %s: %w", step.What, brief(err)), err)
		}
		i.op.say("%s: made", step.What)
	}
	return nil
}

// noMachines goes on without AKS machines where Azure has none to give, and neither the flag nor
// the values ask for them.
func (i *installation) noMachines(step setup.Step, err error) bool {
	f := unavailable.Classify(err)
	if f == nil || f.Kind != unavailable.NoMachineAPI && f.Kind != unavailable.PreviewNotRegistered || i.modeGiven {
		return false
	}
	i.pool = ""
	i.op.say("%s: not made, nap buys plain virtual machines: %s", step.What, f.Error())
	return true
}

// describe says what a dry run found.
func (i *installation) describe(step setup.Step, there bool) {
	if i.op.forPrograms() {
		found := dryStep{What: step.What, There: there, Undo: step.Undo}
		if !there {
			found.Make = step.Command
		}
		i.op.would.Azure = append(i.op.would.Azure, found)
		return
	}
	state := "is missing"
	if there {
		state = "is there"
	}
	fmt.Fprintf(i.op.streams.Out, "\n%s %s\n", step.What, state)
	if !there {
		fmt.Fprintf(i.op.streams.Out, "  make: %s\n", step.Command)
	}
	if step.Undo != "" {
		fmt.Fprintf(i.op.streams.Out, "  undo: %s\n", step.Undo)
	}
}

// failed is the error of a step. Who lacks a permission is told what another account can do.
func (i *installation) failed(rest []setup.Step, said, cause error) error {
	var answer *azcore.ResponseError
	if !errors.As(cause, &answer) || answer.StatusCode != http.StatusForbidden {
		return fmt.Errorf("%w; what was made stays, and the next run goes on from here", said)
	}
	var commands []string
	for _, s := range rest {
		commands = append(commands, "  "+s.Command)
	}
	return first("%w; have what is left run by an account that may do it (Owner, or Contributor and User Access Administrator), "+
		"or the template deploy/nap.json deployed (docs/enable.md), and then run this again:\n%s",
		said, strings.Join(commands, "\n"))
}

// brief is an answer of Azure in one line.
func brief(err error) error {
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		return err
	}
	if f := unavailable.Classify(err); f != nil {
		return errors.New(f.Error())
	}
	return fmt.Errorf("answer of Azure: %d %s", answer.StatusCode, answer.ErrorCode)
}
