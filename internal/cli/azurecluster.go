package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/spf13/pflag"

	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/price"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/prerequisites/azurefacts"
)

// azureCluster is the AKS cluster that a command asks Azure about.
type azureCluster struct {
	target azurefacts.Target

	// lookupEnv, connect and now are the surroundings.
	lookupEnv func(string) (string, bool)
	connect   func(*config.Config) (azureAccess, error)
	now       func() time.Time
}

func newAzureCluster(now func() time.Time) azureCluster {
	return azureCluster{lookupEnv: os.LookupEnv, connect: connectAzure, now: now}
}

// add defines the flags that say which cluster.
func (c *azureCluster) add(flags *pflag.FlagSet) {
	flags.StringVarP(&c.target.ResourceGroup, "resource-group", "g", "", "the cluster's resource group (default: $ARM_RESOURCE_GROUP)")
	flags.StringVarP(&c.target.Name, "name", "n", "", "the name of the AKS cluster (default: $CLUSTER_NAME)")
	flags.StringVar(&c.target.Subscription, "subscription", "", "the subscription of the AKS cluster (default: $AZURE_SUBSCRIPTION_ID)")
}

// config is which cluster in which Azure, from flags and variables.
func (c *azureCluster) config() (config.Config, error) {
	t := &c.target
	for _, v := range []struct {
		into       *string
		name, flag string
	}{{&t.ResourceGroup, "ARM_RESOURCE_GROUP", "--resource-group"}, {&t.Name, "CLUSTER_NAME", "--name"},
		{&t.Subscription, "AZURE_SUBSCRIPTION_ID", "--subscription"}} {
		value, _ := c.lookupEnv(v.name)
		if *v.into = cmp.Or(*v.into, value); *v.into == "" {
			return config.Config{}, fmt.Errorf("which AKS cluster? give %s, or set %s", v.flag, v.name)
		}
	}
	if err := command.CheckSubscription(t.Subscription); err != nil {
		return config.Config{}, err
	}
	given := map[string]string{"CLUSTER_NAME": t.Name, "ARM_RESOURCE_GROUP": t.ResourceGroup, "AZURE_SUBSCRIPTION_ID": t.Subscription}
	// Of the controller's variables only those that say which Azure it is count.
	cfg, err := config.Load(func(name string) (string, bool) {
		if value, has := given[name]; has {
			return value, true
		}
		switch name {
		case "ARM_CLOUD", "AZURE_ENVIRONMENT_FILEPATH", "AZURE_TENANT_ID", "ARM_TENANT_ID", "NAP_RETAIL_PRICES":
			return c.lookupEnv(name)
		}
		return "", false
	}, os.ReadFile)
	t.RetailPrices, t.NoRetailPrices = cfg.Cloud.RetailPrices, !cfg.Cloud.HasRetailPrices()
	return cfg, err
}

// azureAccess is how Azure is reached.
type azureAccess struct {
	credential azcore.TokenCredential
	options    *arm.ClientOptions
	http       price.Doer
}

// connectAzure signs in as Azure's programs do.
func connectAzure(c *config.Config) (azureAccess, error) {
	credential, options, err := azure.Connect(c)
	return azureAccess{signIn{credential}, options, http.DefaultClient}, err
}

// signIn is a credential that says how to sign in where it has no token to give.
type signIn struct{ azcore.TokenCredential }

// GetToken implements azcore.TokenCredential.
func (s signIn) GetToken(ctx context.Context, of policy.TokenRequestOptions) (azcore.AccessToken, error) {
	token, err := s.TokenCredential.GetToken(ctx, of)
	if err != nil {
		err = fmt.Errorf("sign in first, with az login or AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET "+
			"of a service principal: %w", unbroken{err})
	}
	return token, err
}

// unbroken is an error of Azure's library in one line: it shows an answer of HTTP as it came.
type unbroken struct{ error }

// dashes are a line between the parts of an answer.
var dashes = regexp.MustCompile(`(?m)^\s*-{10,}\s*$`)

// Error implements error.
func (u unbroken) Error() string {
	return strings.Join(strings.Fields(dashes.ReplaceAllString(u.error.Error(), "")), " ")
}

// Unwrap lets callers ask which error it is.
func (u unbroken) Unwrap() error { return u.error }

// inOneLine is an error of a call of Azure in one line: of an answer its code, behind what was
// asked for.
func inOneLine(err error) error {
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		return err
	}
	asked, _, _ := strings.Cut(err.Error(), answer.Error())
	return fmt.Errorf("%s%s", asked, azurefacts.Short(err))
}
