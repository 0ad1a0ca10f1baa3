package armsim

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// apiError is an answer of the API that is not a success. Code and message are
// those of the real Azure: clients tell quota and capacity errors apart by them.
type apiError struct {
	Status     int
	Code       string
	Message    string
	Target     string
	Details    []apiError
	RetryAfter time.Duration
	abort      bool // close the connection instead of answering
}

func (e *apiError) Error() string { return e.Code + ": " + e.Message }

// body is the error in the form of ARM's bodies, {"error": body}.
func (e *apiError) body() map[string]any {
	b := map[string]any{"code": e.Code, "message": e.Message}
	if e.Target != "" {
		b["target"] = e.Target
	}
	if len(e.Details) > 0 {
		var details []any
		for _, d := range e.Details {
			details = append(details, d.body())
		}
		b["details"] = details
	}
	return b
}

func newError(status int, code, format string, args ...any) *apiError {
	return &apiError{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
}

func errResourceNotFound(p path) *apiError {
	return newError(http.StatusNotFound, "ResourceNotFound",
		"The Resource '%s' under resource group '%s' was not found. For more details please go to https://aka.ms/ARMResourceNotFoundFix",
		p.relative(), p.group)
}

func errGroupNotFound(group string) *apiError {
	return newError(http.StatusNotFound, "ResourceGroupNotFound", "Resource group '%s' could not be found.", group)
}

func errInvalidReference(missing, by string) *apiError {
	return newError(http.StatusBadRequest, "InvalidResourceReference",
		"Resource %s referenced by resource %s was not found. Please make sure that the referenced resource exists, and that both resources are in the same region.", missing, by)
}

func errInvalidParameter(target, format string, args ...any) *apiError {
	e := newError(http.StatusBadRequest, "InvalidParameter", format, args...)
	e.Target = target
	return e
}

func errImmutable(property string) *apiError {
	e := newError(http.StatusConflict, "PropertyChangeNotAllowed", "Changing property '%s' is not allowed.", property)
	e.Target = property
	return e
}

// Names of the usages that are not families.
const (
	usageCores = "cores"
	usageSpot  = "lowPriorityCores"
)

// errQuota is what Azure says when a machine does not fit into a quota. The
// words before the first full stop differ by the kind of quota, and clients
// look for them.
func errQuota(usage, location string, limit, used, want int64) *apiError {
	what := usage + " Cores quota"
	switch usage {
	case usageCores:
		what = "Total Regional Cores quota"
	case usageSpot:
		what = "LowPriorityCores quota"
	}
	return newError(http.StatusConflict, "OperationNotAllowed",
		"Operation could not be completed as it results in exceeding approved %s. Additional details - Deployment Model: Resource Manager, "+
			"Location: %s, Current Limit: %d, Current Usage: %d, Additional Required: %d, (Minimum) New Limit Required: %d. "+
			"Setup Alerts when Quota reaches threshold. Learn more at https://aka.ms/quotamonitoringalerting . "+
			"Submit a request for Quota increase at https://aka.ms/ProdportalCRP/#blade/Microsoft_Azure_Capacity/UsageAndQuota.ReactView "+
			"by specifying parameters listed in the 'Details' section for deployment to succeed. "+
			"Please read more about quota limits at https://docs.microsoft.com/en-us/azure/azure-supportability/per-vm-quota-requests",
		what, location, limit, used, want, used+want)
}

func errSkuNotAvailable(size, location string) *apiError {
	return newError(http.StatusConflict, "SkuNotAvailable",
		"The requested VM size for resource 'Following SKUs have failed for Capacity Restrictions: %s' is currently not available in location '%s'. "+
			"Please try another size or deploy to a different location or different zone. See https://aka.ms/azureskunotavailable for details.", size, location)
}

// Codes of the four ways in which an allocation fails.
const (
	codeZonalAllocation      = "ZonalAllocationFailed"
	codeAllocation           = "AllocationFailed"
	codeOverconstrainedZonal = "OverconstrainedZonalAllocationRequest"
	codeOverconstrained      = "OverconstrainedAllocationRequest"
	codeSkuNotAvailable      = "SkuNotAvailable"
)

// errAllocation is the failure of an allocation by its code.
func errAllocation(code string, m vmSpec, location string) *apiError {
	const guidance = " Read more about improving likelihood of allocation success at http://aka.ms/allocation-guidance"
	switch code {
	case codeSkuNotAvailable:
		return errSkuNotAvailable(m.Size, location)
	case codeZonalAllocation:
		return newError(http.StatusConflict, code, "Allocation failed. We do not have sufficient capacity for the requested VM size in this zone."+guidance)
	case codeOverconstrainedZonal, codeOverconstrained:
		constraints := []string{"VM Size"}
		if code == codeOverconstrainedZonal {
			constraints = append(constraints, "Availability Zone")
		}
		if m.UltraSSD {
			constraints = append(constraints, "Ultra Disk")
		}
		if m.Ephemeral {
			constraints = append(constraints, "Ephemeral Disk")
		}
		if m.Priority == prioritySpot {
			constraints = append(constraints, "Low Priority VM")
		}
		return newError(http.StatusConflict, code, "Allocation failed. VM(s) with the following constraints cannot be allocated, because the condition is too restrictive. "+
			"Please remove some constraints and try again. Constraints applied are:\n  - %s", strings.Join(constraints, "\n  - "))
	}
	return newError(http.StatusConflict, code, "Allocation failed. We do not have sufficient capacity for the requested VM size in this region."+guidance)
}
