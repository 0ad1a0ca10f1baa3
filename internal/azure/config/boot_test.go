package config

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
)

// isolated makes a cluster one that bootstraps from a registry of the user's own.
func isolated(f *managedcluster.Facts) {
	f.ArtifactSource = "Cache"
	f.ContainerRegistryID = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.ContainerRegistry/registries/Prod"
}

func TestBootSettingsAndWhatTheClusterTells(t *testing.T) {
	for what, tt := range map[string]struct {
		vars   map[string]string
		change func(*managedcluster.Facts)
		want   Boot
	}{
		"nothing": {few(), nil, Boot{}},
		"all settings": {few("NAP_SECURE_TLS_BOOTSTRAPPING", "true", "NAP_SECURE_TLS_AAD_RESOURCE", "api://nodes", "NAP_RESTRICT_IMDS", "true",
			"NAP_SSH_ACCESS", "Disabled", "NAP_PRIVATE_EGRESS_PROXY", "10.1.2.3:8443", "NAP_PACKAGES_URL", "https://packages.contoso.com"), nil,
			Boot{SecureTLS: true, SecureTLSResource: "api://nodes", RestrictIMDS: true, NoSSH: true,
				PrivateEgressProxy: "10.1.2.3:8443", PackagesURL: "https://packages.contoso.com"}},
		"settings that are empty are not set": {few("NAP_RESTRICT_IMDS", "", "NAP_SSH_ACCESS", " "), func(f *managedcluster.Facts) {
			f.Network.IMDSKeptFromPods, f.SSHAccess = true, "Disabled"
		}, Boot{RestrictIMDS: true, NoSSH: true}},
		"a setting opens what the system pool closes": {few("NAP_SSH_ACCESS", "LocalUser"), func(f *managedcluster.Facts) { f.SSHAccess = "disabled" }, Boot{}},
		"registry":                   {few(), isolated, Boot{Registry: "prod.azurecr.io/aks-managed-repository"}},
		"registry of US Government":  {few("ARM_CLOUD", "AzureUSGovernment"), func(f *managedcluster.Facts) { isolated(f); f.Location = "usgovvirginia" }, Boot{Registry: "prod.azurecr.us/aks-managed-repository"}},
		"registry of China":          {few("ARM_CLOUD", "AzureChinaCloud"), func(f *managedcluster.Facts) { isolated(f); f.Location = "chinanorth3" }, Boot{Registry: "prod.azurecr.cn/aks-managed-repository"}},
		"registry with another host": {few("NAP_BOOTSTRAP_REGISTRY", "prod-a1b2c3.azurecr.io/mcr"), isolated, Boot{Registry: "prod-a1b2c3.azurecr.io/mcr"}},
	} {
		c, err := learn(t, tt.vars, tt.change)
		if err != nil || c.Boot != tt.want {
			t.Errorf("%s: %+v, %v, want %+v", what, c.Boot, err, tt.want)
		}
	}
	custom := Cloud{Environment: &Environment{RegistrySuffix: "registry.contoso.com"}}
	if got := custom.registrySuffix("region1"); got != ".registry.contoso.com" {
		t.Errorf("registries of a cloud of its own end with %s", got)
	}
}
