package armtest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"
)

// Ask sends a request to Azure Resource Manager, with a body in JSON unless that is nil, and
// returns the answer, whatever its status is. It is for callers without a client of the SDK.
func (e *Env) Ask(tb testing.TB, method, path, version string, body any) (status int, answer []byte) {
	tb.Helper()
	var sent []byte
	if body != nil {
		var err error
		if sent, err = json.Marshal(body); err != nil {
			tb.Fatal(err)
		}
	}
	r, err := http.NewRequestWithContext(tb.Context(), method, Endpoint+path+"?api-version="+version, bytes.NewReader(sent))
	if err != nil {
		tb.Fatal(err)
	}
	token, _ := e.Server.Token("")
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	response, err := e.HTTP.Do(r)
	if err != nil {
		tb.Fatal(err)
	}
	defer response.Body.Close()
	if answer, err = io.ReadAll(response.Body); err != nil {
		tb.Fatal(err)
	}
	return response.StatusCode, answer
}
