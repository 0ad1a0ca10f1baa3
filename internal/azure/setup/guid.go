package setup

import (
	"crypto/sha1" //nolint:gosec // what a UUID of version 5 is made of
	"encoding/hex"
	"strings"
)

// templateNamespace is the namespace of the function guid of ARM templates:
// https://learn.microsoft.com/azure/azure-resource-manager/bicep/bicep-functions-string#guid
var templateNamespace = [16]byte{0x11, 0xfb, 0x06, 0xfb, 0x71, 0x2d, 0x4d, 0xdd, 0x98, 0xc7, 0xe7, 0x1b, 0xbd, 0x58, 0x88, 0x30}

// templateGUID is what the function guid of ARM templates makes of texts: a UUID of
// version 5 (RFC 9562) of the texts, joined with hyphens.
func templateGUID(texts ...string) string {
	sum := sha1.Sum(append(templateNamespace[:], strings.Join(texts, "-")...)) //nolint:gosec // see above
	sum[6] = sum[6]&0x0f | 0x50
	sum[8] = sum[8]&0x3f | 0x80
	text := hex.EncodeToString(sum[:16])
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}
