package aksmachine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v9"

	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
	"github.com/nodeautoprovision/nap/internal/azure/resourcelist"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
)

// MachineClient speaks the part of the AKS machine API that the SDK lacks, for
// one agent pool.
type MachineClient struct {
	arm  *arm.Client
	path string // of the pool's machines
}

// NewMachineClient returns a client for the machines of an agent pool, given the
// pool's resource id.
func NewMachineClient(pool string, credential azcore.TokenCredential, options *arm.ClientOptions) (*MachineClient, error) {
	client, err := arm.NewClient("nap/aksmachines", "v1.0.0", credential, options)
	if err != nil {
		return nil, err
	}
	return &MachineClient{client, strings.TrimSuffix(pool, "/") + "/machines"}, nil
}

// machine is a machine of an agent pool, as the API writes it.
type machine struct {
	Name       string     `json:"name,omitempty"`
	Zones      []string   `json:"zones,omitempty"`
	Properties properties `json:"properties"`
}

type properties struct {
	described
	Mode            string                               `json:"mode,omitempty"`
	Network         *network                             `json:"network,omitempty"`
	OperatingSystem operatingSystem                      `json:"operatingSystem"`
	Kubernetes      kubernetes                           `json:"kubernetes"`
	Security        security                             `json:"security"`
	LocalDNSProfile *armcontainerservice.LocalDNSProfile `json:"localDNSProfile,omitempty"`
	ETag            string                               `json:"eTag,omitempty"` // AKS says it, and is never told
}

// tags are read under the names by which nap knows them ([launch.TagName]).
type tags map[string]string

// UnmarshalJSON reads an object of texts.
func (t *tags) UnmarshalJSON(text []byte) error {
	var as map[string]string
	if err := json.Unmarshal(text, &as); err != nil {
		return err
	}
	*t = make(tags, len(as))
	for name, value := range as {
		(*t)[launch.TagName(name)] = value
	}
	return nil
}

// described is what nap reads of every machine every two minutes.
type described struct {
	NodeImageVersion string   `json:"nodeImageVersion,omitempty"`
	Priority         string   `json:"priority,omitempty"`
	Tags             tags     `json:"tags,omitempty"`
	Hardware         hardware `json:"hardware"`

	// The rest is what AKS says, never what it is told.
	ResourceID        string         `json:"resourceId,omitempty"`
	ProvisioningState string         `json:"provisioningState,omitempty"`
	Status            *machineStatus `json:"status,omitempty"`
}

// listedMachine is a machine of a list, with what is read of all: labels, taints and settings
// are passed over.
type listedMachine struct {
	Name       string    `json:"name"`
	Zones      []string  `json:"zones"`
	Properties described `json:"properties"`
}

type network struct {
	VnetSubnetID string `json:"vnetSubnetID,omitempty"`
}

type hardware struct {
	VMSize          string      `json:"vmSize"`
	GPUProfile      *gpuProfile `json:"gpuProfile,omitempty"`
	UltraSSDEnabled bool        `json:"ultraSsdEnabled,omitempty"`
}

type gpuProfile struct {
	Driver string         `json:"driver"` // Install or None
	NVIDIA *nvidiaProfile `json:"nvidia,omitempty"`
}

type nvidiaProfile struct {
	ManagementMode string `json:"managementMode"` // Managed or Unmanaged
}

type operatingSystem struct {
	OSType       string        `json:"osType"`
	OSSKU        string        `json:"osSKU"`
	OSDiskSizeGB int64         `json:"osDiskSizeGB"`
	OSDiskType   string        `json:"osDiskType"` // Ephemeral or Managed
	EnableFIPS   bool          `json:"enableFIPS,omitempty"`
	LinuxProfile *linuxProfile `json:"linuxProfile,omitempty"`
}

type linuxProfile struct {
	LinuxOSConfig *armcontainerservice.LinuxOSConfig `json:"linuxOSConfig"`
}

type kubernetes struct {
	NodeLabels               map[string]string                  `json:"nodeLabels,omitempty"`
	OrchestratorVersion      string                             `json:"orchestratorVersion,omitempty"`
	KubeletConfig            *armcontainerservice.KubeletConfig `json:"kubeletConfig,omitempty"`
	NodeInitializationTaints []string                           `json:"nodeInitializationTaints"`
	NodeTaints               []string                           `json:"nodeTaints"`
	MaxPods                  int                                `json:"maxPods,omitempty"`
	ArtifactStreaming        *enabled                           `json:"artifactStreamingProfile,omitempty"`
}

type enabled struct {
	Enabled bool `json:"enabled"`
}

type security struct {
	SSHAccess              string `json:"sshAccess,omitempty"`
	EnableEncryptionAtHost bool   `json:"enableEncryptionAtHost,omitempty"`
	EnableVTPM             bool   `json:"enableVTPM,omitempty"`
	EnableSecureBoot       bool   `json:"enableSecureBoot,omitempty"`
}

type machineStatus struct {
	CreationTimestamp time.Time          `json:"creationTimestamp"`
	VMState           string             `json:"vmState"`
	DriftAction       string             `json:"driftAction"` // Synced, or what would make it so
	ProvisioningError *unavailable.Cause `json:"provisioningError"`
}

func (c *MachineClient) request(ctx context.Context, method, path string) (*policy.Request, error) {
	req, err := runtime.NewRequest(ctx, method, runtime.JoinPaths(c.arm.Endpoint(), path))
	if err != nil {
		return nil, err
	}
	req.Raw().URL.RawQuery = "api-version=" + managedcluster.MachineAPI
	req.Raw().Header.Set("Accept", "application/json")
	return req, nil
}

// do sends a request and reads the machine in the answer.
func (c *MachineClient) do(req *policy.Request, out any) error {
	resp, err := c.arm.Pipeline().Do(req)
	if err != nil {
		return err
	}
	if !runtime.HasStatusCode(resp, http.StatusOK, http.StatusCreated, http.StatusAccepted) {
		return runtime.NewResponseError(resp)
	}
	return runtime.UnmarshalAsJSON(resp, out)
}

func (c *MachineClient) get(ctx context.Context, name string) (machine, error) {
	var out machine
	req, err := c.request(ctx, http.MethodGet, c.path+"/"+name)
	if err != nil {
		return out, err
	}
	return out, c.do(req, &out)
}

// put asks for the machine, or with batch, the content of the header
// BatchPutMachine, for all machines that it names.
func (c *MachineClient) put(ctx context.Context, name string, body machine, batch []batchEntry) error {
	req, err := c.request(ctx, http.MethodPut, c.path+"/"+name)
	if err != nil {
		return err
	}
	// Spot machines may be of a pool in mode System.
	req.Raw().Header.Set("AllowSpotVMSystemNode", "true")
	if batch != nil {
		header, err := json.Marshal(struct {
			BatchMachines []batchEntry `json:"batchMachines"`
		}{batch})
		if err != nil {
			return fmt.Errorf("encode the header of a batch of machines: %w", err)
		}
		req.Raw().Header.Set("BatchPutMachine", string(header))
	} else {
		// A machine that exists stays as it is, whatever made it.
		req.Raw().Header.Set("If-None-Match", "*")
	}
	if err := runtime.MarshalAsJSON(req, body); err != nil {
		return err
	}
	var ignored machine
	return c.do(req, &ignored)
}

// changeAttempts is how often a machine is read that other clients change between
// reading and writing.
const changeAttempts = 4

// changeTags gives a machine the tags that change makes of it; nil leaves it as it
// is. AKS takes no part of a machine, so it is read and written back whole, with all
// that nap does not know of. When another client wrote it meanwhile, it is read again.
func (c *MachineClient) changeTags(ctx context.Context, name string, change func(machine) map[string]string) error {
	for attempt := 1; ; attempt++ {
		req, err := c.request(ctx, http.MethodGet, c.path+"/"+name)
		if err != nil {
			return err
		}
		var answer json.RawMessage
		if err := c.do(req, &answer); err != nil {
			return err
		}
		var m machine
		if err := json.Unmarshal(answer, &m); err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		tags := change(m)
		if tags == nil {
			return nil
		}
		body, err := retagged(answer, tags)
		if err != nil {
			return err
		}
		err = c.replace(ctx, name, m.Properties.ETag, body)
		if launch.Status(err) != http.StatusPreconditionFailed || attempt == changeAttempts {
			return err
		}
	}
}

// replace writes a machine that exists, unless it was changed since it was read.
func (c *MachineClient) replace(ctx context.Context, name, etag string, body map[string]any) error {
	req, err := c.request(ctx, http.MethodPut, c.path+"/"+name)
	if err != nil {
		return err
	}
	req.Raw().Header.Set("AllowSpotVMSystemNode", "true")
	if etag != "" {
		req.Raw().Header.Set("If-Match", etag)
	}
	if err := runtime.MarshalAsJSON(req, body); err != nil {
		return err
	}
	var ignored machine
	return c.do(req, &ignored)
}

// retagged is a machine as it was read, with other tags and without what AKS alone
// writes.
func retagged(machine json.RawMessage, tags map[string]string) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(machine))
	decoder.UseNumber()
	var body map[string]any
	if err := decoder.Decode(&body); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	for _, path := range readOnly() {
		at := body
		for _, key := range path[:len(path)-1] {
			at, _ = at[key].(map[string]any) // a nil map has no keys, and none to delete
		}
		delete(at, path[len(path)-1])
	}
	properties, _ := body["properties"].(map[string]any)
	if properties == nil {
		return nil, errors.New("read the answer: the machine has no properties")
	}
	properties["tags"] = tags
	return body, nil
}

// readOnly are the paths of what AKS writes into a machine and takes from no client.
func readOnly() [][]string {
	return [][]string{
		{"id"}, {"name"}, {"type"}, {"systemData"},
		{"properties", "eTag"}, {"properties", "resourceId"}, {"properties", "provisioningState"}, {"properties", "status"},
		{"properties", "network", "ipAddresses"}, {"properties", "localDNSProfile", "state"},
		{"properties", "kubernetes", "nodeName"}, {"properties", "kubernetes", "currentOrchestratorVersion"},
	}
}

// list reads all machines of the client's pool, as [machine] or as [listedMachine]; none where
// there is no pool.
func list[T any](ctx context.Context, c *MachineClient) ([]T, error) {
	all, err := resourcelist.Read[T](ctx, c.arm, c.path, managedcluster.MachineAPI)
	if f := unavailable.Classify(err); launch.Status(err) == http.StatusNotFound && f.Kind != unavailable.NoMachineAPI {
		return nil, nil
	}
	return all, err
}
