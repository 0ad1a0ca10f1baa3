package arm

import (
	"cmp"
	"net/http"
)

// shapes are the forms of refusals that users of Azure have seen, by code: a fault
// that names the code answers in this form unless it says otherwise.
var shapes = map[string]Error{
	"SpecifiedAllocatedOutboundPortsForOutboundRuleExceedsTotalNumberOfAvailablePorts": {Status: http.StatusBadRequest,
		Message: "Specified allocated outbound ports 1024 for outbound rule aksOutboundRule of load balancer kubernetes exceed the total " +
			"number of available ports."},
	"InvalidParameter": {Status: http.StatusBadRequest, Target: "securityProfile.encryptionAtHost",
		Message: "The property 'securityProfile.encryptionAtHost' is not valid because the 'Microsoft.Compute/EncryptionAtHost' " +
			"feature is not enabled for this subscription."},
	// The older form of throttling, whose code is that of a used up quota too.
	"OperationNotAllowed": {Status: http.StatusTooManyRequests,
		Message: "The server rejected the request because too many requests have been received for this subscription.",
		Details: []Error{{Code: "TooManyRequests", Target: "HighCostGet3Min",
			Message: `{"operationGroup":"HighCostGet3Min","startTime":"2026-01-01T00:00:00Z","endTime":"2026-01-01T00:03:00Z",` +
				`"allowedRequestCount":800,"measuredRequestCount":1238}`}}},
	"NetworkingInternalOperationError": {Status: http.StatusConflict, Message: "Unknown network allocation error."},
	"RetryableError":                   {Status: http.StatusConflict, Message: "A retryable error occurred."},
	"VMStartTimedOut": {Status: http.StatusConflict,
		Message: "VM did not start in the allotted time. Please retry later."},
	"CanceledAndSupersededDueToAnotherOperation": {Status: http.StatusConflict,
		Message: "Operation was canceled and superseded by another operation."},
	"ResourceOperationFailure": {Status: http.StatusConflict,
		Message: "The resource operation completed with terminal provisioning state 'Failed'.",
		Details: []Error{{Code: "ZonalAllocationFailed",
			Message: "Allocation failed. We do not have sufficient capacity for the requested VM size in this zone."}}},
	"ResourceDeploymentFailure": {Status: http.StatusConflict,
		Message: "The resource operation completed with terminal provisioning state 'Failed'.",
		Details: []Error{{Code: "ZonalAllocationFailed",
			Message: "Allocation failed. We do not have sufficient capacity for the requested VM size in this zone."}}},
	"OSProvisioningClientError": {Status: http.StatusConflict,
		Message: "OS provisioning for the VM failed due to an unexpected error on the guest."},
	"ReadOnlyDisabledSubscription": {Status: http.StatusConflict,
		Message: "The subscription is disabled and therefore marked as read only. You cannot perform any write actions on " +
			"this subscription until it is re-enabled."},
	"ScopeLocked": {Status: http.StatusConflict,
		Message: "The scope cannot perform delete operation because following scope(s) are locked. Please remove the lock and try again."},
	"ResourceGroupBeingDeleted": {Status: http.StatusConflict,
		Message: "The resource group is in deprovisioning state and cannot perform this operation."},
	"KeyVaultAccessForbidden": {Status: http.StatusForbidden,
		Message: "Unable to access key vault resource. Access forbidden to the identity of the disk encryption set."},
	"ImageVersionNotFound": {Status: http.StatusNotFound, Message: "The gallery image version is not available in the region."},
	"PlatformImageNotFound": {Status: http.StatusNotFound, Target: "imageReference",
		Message: "The platform image is not available. Verify that all fields in the storage profile are correct."},
	"MissingSubscriptionRegistration": {Status: http.StatusConflict,
		Message: "The subscription is not registered to use namespace 'Microsoft.Compute'. See https://aka.ms/rps-not-found " +
			"for how to register subscriptions.",
		Details: []Error{{Code: "MissingSubscriptionRegistration", Target: "Microsoft.Compute",
			Message: "The subscription is not registered to use namespace 'Microsoft.Compute'."}}},
}

// shaped gives the error of a fault the form in which Azure answers with its code: what
// the fault says itself stays, a message of its own goes without Azure's details.
func shaped(e *Error, f *Fault) *Error {
	shape, known := shapes[f.Code]
	if !known {
		return e
	}
	if f.Message == "" {
		e.Message, e.Target, e.Details = shape.Message, shape.Target, shape.Details
	}
	e.Status = cmp.Or(f.Status, shape.Status)
	return e
}
