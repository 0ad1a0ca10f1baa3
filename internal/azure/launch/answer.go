package launch

import (
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
)

// Status is the HTTP status of an answer of Azure, 0 for other errors.
func Status(err error) int {
	var answer *azcore.ResponseError
	if errors.As(err, &answer) {
		return answer.StatusCode
	}
	return 0
}

// Value is what p points to, or the zero value where Azure left the field out.
func Value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// Values are the tags that Azure answers with, nap's own under their names.
func Values(m map[string]*string) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[TagName(k)] = Value(v)
	}
	return out
}

// goneCode is the code of a machine which is not there any more; Azure has none for it.
const goneCode = "MachineGone"

// GoneFailure is the failure of a machine that is not there any more.
func GoneFailure(err error) *unavailable.Failure {
	return unavailable.NewFailure(goneCode, "the machine disappeared while it was being created", err)
}

// StateOf reads a provisioningState. States that Azure may add count as Creating: the
// machine is looked at again.
func StateOf(provisioning string) State {
	switch state := State(provisioning); state {
	case Creating, Succeeded, Failed, Deleting:
		return state
	case "Updating":
		return Succeeded // an existing machine being changed
	case "Canceled":
		return Failed
	default:
		return Creating
	}
}
