package cli

import (
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeautoprovision/nap/internal/prerequisites"
)

// installed puts a Deployment of nap with a container into the patient.
func (p *patient) installed(c corev1.Container) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "nap-system", Name: "nap", Labels: map[string]string{
		"helm.sh/chart": "nap-1.0.0", "app.kubernetes.io/instance": "own",
	}}}
	d.Spec.Template.Spec.ServiceAccountName, d.Spec.Template.Spec.Containers = "buyer", []corev1.Container{c}
	p.objects = append(p.objects, d)
}

// rightsRow is the row of the rights in the cluster.
func (p *patient) rightsRow() prerequisites.Result {
	p.Helper()
	report, _, _ := p.examine()
	i := slices.IndexFunc(report.Results, func(r prerequisites.Result) bool { return r.Name == "role-in-cluster" })
	return report.Results[i]
}

// An account that has lost its binding is found, and mended by what made it.
func TestDoctorTellsRightsThatWereLost(t *testing.T) {
	p := healthy(t)
	p.installed(corev1.Container{Name: "controller", Env: []corev1.EnvVar{{Name: "LEADER_ELECTION_NAMESPACE", Value: "leases"}}})
	var leases []string
	p.denied = func(of *authorizationv1.SubjectAccessReviewSpec) bool {
		if of.ResourceAttributes.Resource == "leases" {
			leases = append(leases, of.ResourceAttributes.Namespace)
		}
		return true
	}
	r := p.rightsRow()
	if r.Verdict != prerequisites.Failed || !strings.Contains(r.Read, "nap-system/buyer has 0 of ") || !strings.HasSuffix(r.Finding, " more") ||
		r.Fix != "helm upgrade own charts/nap --namespace nap-system --reset-then-reuse-values, or nap enable" {
		t.Errorf("%+v", r)
	}
	if len(leases) == 0 || slices.ContainsFunc(leases, func(namespace string) bool { return namespace != "leases" }) {
		t.Errorf("leases were asked about in namespaces %v", leases)
	}
}

// Who may not ask what an account may do learns that it is not known. A shadow needs none of it.
func TestDoctorSaysWhereRightsWereNotAsked(t *testing.T) {
	p := healthy(t)
	p.noReviews = errors.New("subjectaccessreviews.authorization.k8s.io is forbidden")
	p.installed(corev1.Container{Name: "controller", Env: []corev1.EnvVar{{Name: "SHADOW", Value: "true"}}})
	if r := p.rightsRow(); r.Verdict != prerequisites.OK || r.Read != "no Deployment of nap" {
		t.Errorf("beside a shadow: %+v", r)
	}
	p = healthy(t)
	p.noReviews = errors.New("subjectaccessreviews.authorization.k8s.io is forbidden")
	p.installed(corev1.Container{Name: "controller"})
	if r := p.rightsRow(); r.Verdict != prerequisites.Unknown || !strings.Contains(r.Finding, "forbidden") {
		t.Errorf("%+v", r)
	}
}
