package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// The names of Azure's clouds.
const (
	CloudPublic = "AzurePublicCloud"
	CloudChina  = "AzureChinaCloud"
	CloudUSGov  = "AzureUSGovernmentCloud"
)

// cloudNames are the allowed values of ARM_CLOUD, with their older spellings.
func cloudNames() map[string]string {
	return map[string]string{
		"AZUREPUBLICCLOUD": CloudPublic, "AZURECLOUD": CloudPublic,
		"AZURECHINACLOUD":        CloudChina,
		"AZUREUSGOVERNMENTCLOUD": CloudUSGov, "AZUREUSGOVERNMENT": CloudUSGov,
	}
}

// Cloud is which Azure the provider speaks to: its endpoints, the tenant that it
// signs in to, and where it reads prices.
type Cloud struct {
	// Name is that of one of Azure's clouds. It does not count where Environment is
	// set, which gives the endpoints of another one.
	Name        string
	Environment *Environment
	// TenantID is the tenant to sign in to; empty leaves it to the credential.
	TenantID string
	// RetailPrices is the URL of the retail price API; empty means Azure's own, which
	// covers the public cloud alone.
	RetailPrices string
}

// Environment are the endpoints of a cloud that is none of Azure's own: the file
// named by AZURE_ENVIRONMENT_FILEPATH.
type Environment struct {
	Name                    string `json:"name"`
	ResourceManagerEndpoint string `json:"resourceManagerEndpoint"`
	ActiveDirectoryEndpoint string `json:"activeDirectoryEndpoint"`
	// TokenAudience is what tokens for Resource Manager are issued for; empty means
	// the endpoint itself.
	TokenAudience string `json:"tokenAudience"`
	// MCR is the registry of Microsoft's images, a host name; RepoDepot serves packages
	// of the operating system, a URL; RegistrySuffix is the end of the names of container
	// registries. Each may be empty.
	MCR            string `json:"mcrURL"`
	RepoDepot      string `json:"repoDepotEndpoint"`
	RegistrySuffix string `json:"containerRegistryDNSSuffix"`
	// Document is the whole file: programs on the machines read more of it than nap.
	Document json.RawMessage `json:"-"`
}

// LoadCloud reads which Azure is meant from the variables of [Load] that say so, for what
// asks Azure about no cluster. The error names every fault.
func LoadCloud(lookup func(string) (string, bool), readFile func(string) ([]byte, error)) (Cloud, error) {
	l := &loader{lookup: lookup}
	c := l.cloud(readFile)
	return c, errors.Join(l.errs...)
}

// cloud reads which Azure this is.
func (l *loader) cloud(readFile func(string) ([]byte, error)) Cloud {
	c := Cloud{
		TenantID:     l.text("AZURE_TENANT_ID", l.text("ARM_TENANT_ID", "")),
		RetailPrices: l.text("NAP_RETAIL_PRICES", ""),
	}
	name, path := l.text("ARM_CLOUD", ""), l.text("AZURE_ENVIRONMENT_FILEPATH", "")
	if name != "" && path != "" {
		l.refuse("ARM_CLOUD", "must not be set together with AZURE_ENVIRONMENT_FILEPATH")
		return c
	}
	if path == "" {
		if name == "" {
			name = CloudPublic
		}
		known, ok := cloudNames()[strings.ToUpper(name)]
		if !ok {
			l.refuse("ARM_CLOUD", "%q is not allowed; allowed are %q", name, []string{CloudPublic, CloudChina, CloudUSGov})
		}
		c.Name = known
		return c
	}
	text, err := readFile(path)
	if err != nil {
		l.refuse("AZURE_ENVIRONMENT_FILEPATH", "%v", err)
		return c
	}
	env := &Environment{}
	// Unknown fields are fine: the same file serves other Azure components.
	if err := json.Unmarshal(text, env); err != nil {
		l.refuse("AZURE_ENVIRONMENT_FILEPATH", "%s is not JSON: %v", path, err)
		return c
	}
	for _, field := range [][2]string{{"resourceManagerEndpoint", env.ResourceManagerEndpoint},
		{"activeDirectoryEndpoint", env.ActiveDirectoryEndpoint}} {
		if !strings.HasPrefix(field[1], "https://") {
			l.refuse("AZURE_ENVIRONMENT_FILEPATH", "%s: field %s must be an https URL, got %q", path, field[0], field[1])
		}
	}
	var document bytes.Buffer
	if err := json.Compact(&document, text); err != nil {
		l.refuse("AZURE_ENVIRONMENT_FILEPATH", "%s is not JSON: %v", path, err)
	}
	env.Document = document.Bytes()
	c.Environment = env
	return c
}

// Azure is the SDK's description of the cloud.
func (c *Cloud) Azure() cloud.Configuration {
	if c.Environment != nil {
		audience := c.Environment.TokenAudience
		if audience == "" {
			audience = c.Environment.ResourceManagerEndpoint
		}
		return cloud.Configuration{
			ActiveDirectoryAuthorityHost: c.Environment.ActiveDirectoryEndpoint,
			Services: map[cloud.ServiceName]cloud.ServiceConfiguration{
				cloud.ResourceManager: {Endpoint: c.Environment.ResourceManagerEndpoint, Audience: audience},
			},
		}
	}
	switch c.Name {
	case CloudChina:
		return cloud.AzureChina
	case CloudUSGov:
		return cloud.AzureGovernment
	}
	return cloud.AzurePublic
}

// HasRetailPrices reports whether there is a price API to ask: Azure's own
// covers the public cloud alone.
func (c *Cloud) HasRetailPrices() bool {
	return c.RetailPrices != "" || (c.Environment == nil && c.Name == CloudPublic)
}

// BillsLinux reports whether machines must carry AKS's billing extension, which
// exists in Azure's own clouds.
func (c *Cloud) BillsLinux() bool {
	return c.Environment == nil && slices.Contains([]string{CloudPublic, CloudChina, CloudUSGov}, c.Name)
}

// Credential signs in by whatever the environment offers: workload identity,
// managed identity, a service principal, the Azure CLI. In a cloud of its own
// the authority is trusted as configured instead of being looked up at Azure's.
func (c *Cloud) Credential(options azcore.ClientOptions) (azcore.TokenCredential, error) {
	options.Cloud = c.Azure()
	credential, err := azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{
		ClientOptions:            options,
		TenantID:                 c.TenantID,
		DisableInstanceDiscovery: c.Environment != nil,
	})
	if err != nil {
		return nil, fmt.Errorf("sign in to Azure: %w; set up workload identity, a managed identity or AZURE_CLIENT_ID and "+
			"AZURE_CLIENT_SECRET", err)
	}
	return credential, nil
}
