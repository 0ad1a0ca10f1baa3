package cloud

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/lab"
)

// access is azure.json: how to administer the simulated Azure.
type access struct {
	Endpoint   string `json:"endpoint"`
	AdminToken string `json:"adminToken"`
	CAFile     string `json:"caFile"`
	Region     string `json:"region"`
}

// environment is the file that AZURE_ENVIRONMENT_FILEPATH names, in the form
// that Azure Stack and the cloud provider for Azure use.
type environment struct {
	Name                    string `json:"name"`
	ResourceManagerEndpoint string `json:"resourceManagerEndpoint"`
	ActiveDirectoryEndpoint string `json:"activeDirectoryEndpoint"`
	TokenAudience           string `json:"tokenAudience"`
}

func endpoint(env lab.Environment) string {
	return "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(env.Ports[Name]))
}

func (s *Service) writeFiles(env lab.Environment, azure *armsim.Server, adminToken string) error {
	url := endpoint(env)
	caFile := filepath.Join(env.Dir, "ca.crt")
	admin, err := json.Marshal(access{Endpoint: url, AdminToken: adminToken, CAFile: caFile, Region: azure.Config().Region})
	if err != nil {
		return err
	}
	endpoints, err := json.Marshal(environment{
		Name: "AzureLab", ResourceManagerEndpoint: url, ActiveDirectoryEndpoint: url, TokenAudience: "https://management.azure.com",
	})
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		"azure.json": admin, "azure-environment.json": endpoints, "ca.crt": env.CA, "azure-token": []byte("federated"),
		environmentFile: shellFile(append(controllerEnvironment(env, azure), s.machineEnvironment(azure)...)),
		AdminFile:       shellFile(adminEnvironment(env, azure, adminToken)),
	} {
		if err := os.WriteFile(filepath.Join(env.Dir, name), data, 0o600); err != nil {
			return fmt.Errorf("tell others where Azure is: %w", err)
		}
	}
	return nil
}

// environmentFile holds the variables of ControllerEnvironment, one NAME='value' a
// line, so that a person can source it and run a controller by hand.
const environmentFile = "azure.env"

// ControllerEnvironment are the variables with which a controller finds its
// cluster and signs in to the simulated Azure of the lab in dir, by workload
// identity. They are those that one sets on AKS, without what the cluster tells of
// itself; nothing in them says that Azure is simulated. It is an error to ask before
// the service is ready.
func ControllerEnvironment(dir string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, environmentFile))
	if err != nil {
		return nil, fmt.Errorf("the lab's Azure is not ready: %w", err)
	}
	var variables []string
	for line := range strings.Lines(string(text)) {
		name, quoted, _ := strings.Cut(strings.TrimSpace(line), "=")
		variables = append(variables, name+"="+strings.Trim(quoted, "'"))
	}
	return variables, nil
}

// AdminFile holds the variables with which the owner of the lab's subscription signs in, one
// NAME='value' a line: for nap enable and nap doctor.
const AdminFile = "admin.env"

func adminEnvironment(env lab.Environment, azure *armsim.Server, secret string) []string {
	var out []string
	for _, v := range controllerEnvironment(env, azure) {
		switch name, _, _ := strings.Cut(v, "="); name {
		case "AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE":
		default:
			out = append(out, v)
		}
	}
	return append(out, "AZURE_CLIENT_ID="+adminID, "AZURE_CLIENT_SECRET="+secret, "KUBECONFIG="+env.Kubeconfig)
}

func controllerEnvironment(env lab.Environment, azure *armsim.Server) []string {
	cfg := azure.Config()
	return []string{
		"CLUSTER_NAME=" + cfg.Cluster.Name,
		"ARM_RESOURCE_GROUP=" + cfg.Cluster.ResourceGroup,
		"AZURE_SUBSCRIPTION_ID=" + cfg.SubscriptionID,
		"AZURE_TENANT_ID=" + cfg.TenantID,
		"AZURE_CLIENT_ID=" + clientID,
		"AZURE_AUTHORITY_HOST=" + endpoint(env),
		"AZURE_FEDERATED_TOKEN_FILE=" + filepath.Join(env.Dir, "azure-token"),
		"AZURE_ENVIRONMENT_FILEPATH=" + filepath.Join(env.Dir, "azure-environment.json"),
		"NAP_RETAIL_PRICES=" + endpoint(env) + "/api/retail/prices",
		"SSL_CERT_FILE=" + filepath.Join(env.Dir, "ca.crt"),
	}
}

// machinesPool is the agent pool of mode Machines that the lab's cluster has. The
// controller is not told of it: it learns so from the cluster.
const machinesPool = "machines"

// machineEnvironment says how machines are made, where the lab does not leave that to
// the controller. A lab that goes on in another
// mode has machines of the mode before, and they are looked after too.
func (s *Service) machineEnvironment(azure *armsim.Server) []string {
	if s.options.ProvisionMode == "" {
		return nil
	}
	out := []string{"PROVISION_MODE=" + s.options.ProvisionMode}
	if s.options.ProvisionMode == config.ModeVMs && len(azure.Leaks().Machines) > 0 {
		out = append(out, "MANAGE_EXISTING_AKS_MACHINES=true")
	}
	return out
}

// shellFile writes variables so that a shell can source them. None of the values
// contains a quote.
func shellFile(variables []string) []byte {
	var out strings.Builder
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		fmt.Fprintf(&out, "%s='%s'\n", name, value)
	}
	return []byte(out.String())
}

func trimV(version string) string { return strings.TrimPrefix(version, "v") }
