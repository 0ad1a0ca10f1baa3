package azure

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/azure/bootstrap"
	"github.com/nodeautoprovision/nap/internal/azure/bootstrap/inputs"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/jointoken"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
)

// Everything that carries a bootstrap token on its way to a machine is printed, logged
// and encoded in every way: the token is in none of it.
func TestNothingThatCarriesTokenShowsIt(t *testing.T) {
	const secret = "0123456789abcdef"
	token := jointoken.New("abcdef." + secret)
	c := config.Config{BootstrapToken: token, ClusterEndpoint: "https://cluster.test:443"}
	spec := launch.NodeSpec{Claim: "general-abc12", JoinToken: token, SKU: &instancetype.SKU{}, Class: &nodeclass.NodeClass{}}
	cluster := inputs.Cluster(&c, "")
	cluster.Join.Token = token
	boot := bootstrap.Config{Bootstrapping: bootstrap.BootstrappingConfig{TLSBootstrappingToken: token}}
	made := &specifier{config: &c, token: func(context.Context) (jointoken.Token, error) { return token, nil }}
	var out bytes.Buffer
	for _, v := range []any{c, &c, spec, &spec, cluster, cluster.Join, &cluster, boot, &boot, boot.Bootstrapping, made, *made} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		slog.New(slog.NewTextHandler(&out, nil)).Info("told", "value", v)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("told", "value", v)
		if text, err := json.Marshal(v); err == nil { // a NodeSpec has no JSON
			out.Write(text)
		}
	}
	_, err := inputs.Config(&c, spec, "") // it lacks nearly everything, and says so
	if err == nil {
		t.Fatal("boot data were written of nothing")
	}
	fmt.Fprintf(&out, "%v %+v %#v", err, err, err)
	for _, part := range []string{secret, fmt.Sprintf("%x", secret)} {
		if i := strings.Index(out.String(), part); i >= 0 {
			t.Errorf("the token is shown: ...%s...", out.String()[max(0, i-100):i])
		}
	}
	text, err := boot.JSON()
	if err != nil || !strings.Contains(string(text), token.Reveal()) {
		t.Errorf("the machine is told %s, %v", text, err)
	}
}
