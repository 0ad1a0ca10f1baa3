package azure

import (
	"context"
	"errors"

	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

// adoptAKSMachines gives machines of the agent pool that have lost their tags those
// tags again, so that they are listed, updated and collected as before. Such a
// machine is ours when it bears what nap alone writes, and is the machine of a
// NodeClaim, or is named as claims are and older than an hour.
func (c *collector) adoptAKSMachines(ctx context.Context, claims map[string]bool) error {
	if c.aks == nil {
		return nil
	}
	orphans, err := c.aks.Orphans(ctx)
	if err != nil {
		return err
	}
	if len(orphans) == 0 {
		return nil
	}
	named := map[string]string{} // claims by their machines' names, which may be shorter
	for claim := range claims {
		if machine, err := launch.MachineName(claim); err == nil {
			named[machine] = claim
		}
	}
	var errs []error
	present := map[string]bool{}
	for _, o := range orphans {
		present[o.Name] = true
		claim, live := named[o.Name]
		if !live {
			if claim = o.Claim; claim == "" {
				claim = o.Name
			}
			if o.Claim == "" && !ourClaim.MatchString(o.Name) || ageOf(o.Name, o.Created, &c.agelessAKS, c.now()) < untaggedAge {
				continue
			}
		}
		if err := c.aks.Adopt(ctx, o, claim); err != nil {
			errs = append(errs, err)
			continue
		}
		c.list.forget()
		c.log.Warn("an AKS machine had lost its tags and was recognised by what it was made with",
			"machine", o.Name, "nodeClaim", claim, "claimed", live)
	}
	c.agelessAKS.keep(present)
	return errors.Join(errs...)
}
