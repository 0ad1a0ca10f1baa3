package aksmachine

import (
	"context"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
)

// poolBody is an agent pool of mode Machines: everything else is each machine's own.
type poolBody struct {
	Properties struct {
		Mode string `json:"mode"`
	} `json:"properties"`
}

// Ask reads the machines of the pool, to see whether the pool is there and whether AKS
// has the API at all. The error is Azure's own.
func (c *MachineClient) Ask(ctx context.Context) error {
	req, err := c.request(ctx, http.MethodGet, c.path)
	if err != nil {
		return err
	}
	var page struct{}
	return c.do(req, &page)
}

// MakePool asks AKS for the pool, unless it is there: then the answer's status is 412.
// AKS goes on making it after it has answered.
func (c *MachineClient) MakePool(ctx context.Context) error {
	req, err := c.request(ctx, http.MethodPut, strings.TrimSuffix(c.path, "/machines"))
	if err != nil {
		return err
	}
	req.Raw().Header.Set("If-None-Match", "*")
	var body poolBody
	body.Properties.Mode = managedcluster.ModeMachines
	if err := runtime.MarshalAsJSON(req, body); err != nil {
		return err
	}
	var made struct{}
	return c.do(req, &made)
}
