package aksmachine

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v9"

	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
)

// machineVersion is the version of the AKS machine API. The stable versions, and
// with them the SDK, can only read a machine's address and id; creating one, its
// state and its tags are in preview.
const machineVersion = "2026-04-02-preview"

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
	NodeImageVersion string                               `json:"nodeImageVersion,omitempty"`
	Mode             string                               `json:"mode,omitempty"`
	Priority         string                               `json:"priority,omitempty"`
	Tags             map[string]string                    `json:"tags,omitempty"`
	Network          *network                             `json:"network,omitempty"`
	Hardware         hardware                             `json:"hardware"`
	OperatingSystem  operatingSystem                      `json:"operatingSystem"`
	Kubernetes       kubernetes                           `json:"kubernetes"`
	Security         security                             `json:"security"`
	LocalDNSProfile  *armcontainerservice.LocalDNSProfile `json:"localDNSProfile,omitempty"`

	// The rest is what AKS says, never what it is told.
	ETag              string         `json:"eTag,omitempty"`
	ResourceID        string         `json:"resourceId,omitempty"`
	ProvisioningState string         `json:"provisioningState,omitempty"`
	Status            *machineStatus `json:"status,omitempty"`
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
	Driver string `json:"driver"` // Install or None
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
	req.Raw().URL.RawQuery = "api-version=" + machineVersion
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

// patchTags replaces a machine's tags, unless it was changed since it was read.
func (c *MachineClient) patchTags(ctx context.Context, name, etag string, tags map[string]string) error {
	req, err := c.request(ctx, http.MethodPatch, c.path+"/"+name)
	if err != nil {
		return err
	}
	if etag != "" {
		req.Raw().Header.Set("If-Match", etag)
	}
	body := map[string]any{"properties": map[string]any{"tags": tags}}
	if err := runtime.MarshalAsJSON(req, body); err != nil {
		return err
	}
	var ignored machine
	return c.do(req, &ignored)
}

// list reads all machines of the pool.
func (c *MachineClient) list(ctx context.Context) ([]machine, error) {
	var out []machine
	req, err := c.request(ctx, http.MethodGet, c.path)
	for {
		if err != nil {
			return nil, err
		}
		var page struct {
			Value    []machine `json:"value"`
			NextLink string    `json:"nextLink"`
		}
		if err := c.do(req, &page); err != nil {
			return nil, err
		}
		out = append(out, page.Value...)
		if page.NextLink == "" {
			return out, nil
		}
		req, err = runtime.NewRequest(ctx, http.MethodGet, page.NextLink)
	}
}
