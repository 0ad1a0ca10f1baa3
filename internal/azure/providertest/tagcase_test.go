package providertest

import (
	"net/http"
	"testing"
)

// Azure does not tell upper case from lower case in names of tags. A machine whose tags were
// written by something else in another case is still nap's: it is listed, and given back.
func TestTagsInAnotherCaseAreNapsOwn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.provider.Launch(t.Context(), w.order("general-aaaaa", sizes("Standard_D4s_v5"), onDemand())); err != nil {
			t.Fatal(err)
		}
		w.send(t, http.MethodPatch, "Microsoft.Compute/virtualMachines/aks-general-aaaaa",
			`{"tags": {"Karpenter.azure.com_Cluster": "`+w.ClusterName+`", "Karpenter.sh_NodePool": "general"}}`)
		if got := w.claimsListed(t); got != "general-aaaaa" {
			t.Errorf("listed are %q, want the machine", got)
		}
		m, err := w.provider.Get(t.Context(), "general-aaaaa")
		if err != nil || m.Pool != "general" {
			t.Errorf("got %+v, %v, want a machine of NodePool general", m, err)
		}
		if err := w.provider.Delete(t.Context(), m.Claim, ""); err != nil {
			t.Errorf("it cannot be given back: %v", err)
		}
	})
}
