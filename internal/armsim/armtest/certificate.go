package armtest

import (
	"encoding/pem"
	"net/http/httptest"
	"sync"
)

// Certificate is a certificate in PEM, for a cluster's CA with which nothing is signed.
func Certificate() []byte { return certificate() }

// certificate is made once.
var certificate = sync.OnceValue(func() []byte {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
})
