package launch

import (
	"strings"
	"sync"

	"github.com/nodeautoprovision/nap/internal/azure/bootresult"
)

// BootFailure says why a machine that Azure has made does not become a node.
type BootFailure struct {
	// ExitCode is that of the node's provisioning, 0 where it is not known.
	ExitCode int
	// Text says what happened, in the words of Azure and of the machine; empty when
	// nothing is known to be wrong.
	Text string
}

// Boots are the failures of machines' provisioning that are known in this process, by
// claim. A machine's failure stays until Forget: it is final. Boots are safe for
// concurrent use.
type Boots struct {
	mu       sync.Mutex
	failures map[string]BootFailure
}

// NewBoots returns an empty memory.
func NewBoots() *Boots { return &Boots{failures: map[string]BootFailure{}} }

// Failed records that the provisioning of a claim's machine has failed.
func (b *Boots) Failed(claim string, f BootFailure) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures[claim] = f
}

// Of is the failure of a claim's machine; false when none is known.
func (b *Boots) Of(claim string) (BootFailure, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, ok := b.failures[claim]
	return f, ok
}

// Forget drops what is known of a claim's machine: it is a node, or gone.
func (b *Boots) Forget(claim string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.failures, claim)
}

// BootFailureIn reads from an error of Azure why a machine's provisioning failed; false
// when the error is about something else, such as capacity.
func BootFailureIn(code, message string) (BootFailure, bool) {
	if r, ok := bootresult.Parse(message); ok && r.Failed() {
		return BootFailure{ExitCode: r.ExitCode, Text: r.String()}, true
	}
	if strings.HasPrefix(code, "VMExtension") {
		return BootFailure{Text: code + ": " + strings.Join(strings.Fields(message), " ")}, true
	}
	return BootFailure{}, false
}

// OSGivenUp reports whether a machine failed because its operating system never said that it
// is ready. It has power then, and may be ready later.
func OSGivenUp(code string) bool { return strings.HasPrefix(code, "OSProvisioning") }
