package setup

import (
	"strings"

	"github.com/google/uuid"
)

// templateNamespace is the namespace of the function guid of ARM templates:
// https://learn.microsoft.com/azure/azure-resource-manager/bicep/bicep-functions-string#guid
const templateNamespace = "11fb06fb-712d-4ddd-98c7-e71bbd588830"

// templateGUID is what the function guid of ARM templates makes of texts: a UUID of
// version 5 (RFC 9562) of the texts, joined with hyphens.
func templateGUID(texts ...string) string {
	return uuid.NewSHA1(uuid.MustParse(templateNamespace), []byte(strings.Join(texts, "-"))).String()
}
