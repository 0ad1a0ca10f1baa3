package vm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"

	"github.com/nodeautoprovision/nap/internal/azure/bootresult"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

const (
	// consoleMinutes is for how long the address of a serial log is valid.
	consoleMinutes = 5
	// mostConsole is how much of a serial log is read, in bytes.
	mostConsole = 4 << 20
	// blobTimeout bounds the reading of it.
	blobTimeout = 20 * time.Second
)

// Console are the last lines of the serial log that boot diagnostics keep. Azure is
// asked for it only where the machine has boot diagnostics: others have no log.
func (v *Launcher) Console(ctx context.Context, m launch.Machine) ([]string, error) {
	name, group := launch.ResourceName(m.Claim), v.config.NodeResourceGroup
	machine, err := v.clients.Machines.Get(ctx, group, name, nil)
	if launch.Status(err) == http.StatusNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read virtual machine %s: %w", name, err)
	}
	if p := machine.Properties; p == nil || p.DiagnosticsProfile == nil || p.DiagnosticsProfile.BootDiagnostics == nil ||
		!launch.Value(p.DiagnosticsProfile.BootDiagnostics.Enabled) {
		return nil, nil
	}
	answer, err := v.clients.Machines.RetrieveBootDiagnosticsData(ctx, group, name,
		&armcompute.VirtualMachinesClientRetrieveBootDiagnosticsDataOptions{SasURIExpirationTimeInMinutes: to.Ptr[int32](consoleMinutes)})
	if err != nil {
		return nil, fmt.Errorf("ask where the serial log of virtual machine %s is: %w", name, err)
	}
	if answer.SerialConsoleLogBlobURI == nil || *answer.SerialConsoleLogBlobURI == "" {
		return nil, nil
	}
	text, err := v.readBlob(ctx, *answer.SerialConsoleLogBlobURI)
	if err != nil {
		return nil, fmt.Errorf("read the serial log of virtual machine %s: %w", name, err)
	}
	return bootresult.LastLines(text), nil
}

// readBlob reads a blob whose address permits to. An error does not show the address:
// who has it can read the log.
func (v *Launcher) readBlob(ctx context.Context, address string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, blobTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", errors.New("what Azure gave is no address")
	}
	answer, err := v.clients.Blobs.Do(request)
	if err != nil {
		return "", fmt.Errorf("%s does not answer; allow nap the storage of boot diagnostics outbound", request.URL.Host)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answers %s", request.URL.Host, answer.Status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostConsole))
	if err != nil {
		return "", fmt.Errorf("%s: %w", request.URL.Host, err)
	}
	return string(text), nil
}
