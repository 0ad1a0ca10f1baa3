package controllercli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/api/crds"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller/bootstraptoken"
	"github.com/nodeautoprovision/nap/internal/controller/rbac"
)

func newControllerManifests(s command.Streams) *cobra.Command {
	var namespace, account, user, tokens string
	var shadow, alone bool
	cmd := &cobra.Command{
		Use:   "manifests",
		Short: "Print what the controller needs in a cluster: custom resources and permissions",
		Long: `Print the custom resource definitions, roles and role bindings that the
controller needs, for "kubectl apply --server-side -f -". The permissions go to
a service account, or with --user to a user. Those of all feature gates are
included, and roles for users: nap-view, nap-edit and nap-admin, which become
part of Kubernetes' roles view, edit and admin, nap-metrics-reader and
nap-profiler. --bootstrap-tokens must be that of the controller: it decides
which Secrets of kube-system it may read. With --shadow, print what
nap-controller --shadow needs instead: the definition of ShadowReport, and a
role that writes nothing else. With --definitions, print the definitions alone:
that is the update of an installation which has its roles already.`,
		Args: command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}
			if user != "" {
				subject = rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}
			}
			if shadow {
				return shadowManifests(s.Out, subject, alone)
			}
			if alone {
				return allDefinitions(s.Out)
			}
			features := []rbac.Feature{rbac.LeaderElection, rbac.NodeOverlay, rbac.CapacityBuffer, rbac.DynamicResources,
				rbac.SecureMetrics, rbac.PodDeletionCost, rbac.SchedulerConfig, rbac.DefaultNodePools}
			switch modes := bootstraptoken.Modes(); bootstraptoken.Mode(tokens) {
			case bootstraptoken.Own:
				features = append(features, rbac.BootstrapTokens)
			case bootstraptoken.Cluster:
				features = append(features, rbac.ClusterBootstrapTokens)
			case bootstraptoken.Given, bootstraptoken.None:
			default:
				return fmt.Errorf("--bootstrap-tokens %q: allowed are %q", tokens, modes)
			}
			text, err := manifests(namespace, subject, features...)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(s.Out, text)
			return err
		},
	}
	cmd.Flags().StringVar(&namespace, "namespace", "kube-system", "namespace of the service account and of the lease")
	cmd.Flags().StringVar(&account, "service-account", "nap", "service account that gets the permissions")
	cmd.Flags().StringVar(&user, "user", "", "user that gets the permissions instead")
	cmd.Flags().StringVar(&tokens, "bootstrap-tokens", string(bootstraptoken.Own),
		"whose bootstrap tokens machines join with: own, cluster, given or none")
	cmd.Flags().BoolVar(&shadow, "shadow", false, "print what nap-controller --shadow needs instead")
	cmd.Flags().BoolVar(&alone, "definitions", false, "print the custom resource definitions alone, without roles")
	return cmd
}

// shadowManifests prints the definition of ShadowReport, and the shadow's role unless the
// definition is to be alone.
func shadowManifests(w io.Writer, subject rbacv1.Subject, alone bool) error {
	definition, err := crds.ShadowReport()
	if err != nil {
		return err
	}
	if err := writeDefinitions(w, definition); err != nil || alone {
		return err
	}
	role, err := rbac.Shadow(subject)
	if err != nil {
		return err
	}
	_, err = w.Write(role)
	return err
}

// allDefinitions prints all custom resource definitions, as YAML documents.
func allDefinitions(w io.Writer) error {
	definitions, err := crds.All()
	if err != nil {
		return err
	}
	return writeDefinitions(w, definitions...)
}

func writeDefinitions(w io.Writer, definitions ...*apiextensionsv1.CustomResourceDefinition) error {
	for _, d := range definitions {
		doc, err := yaml.Marshal(d)
		if err != nil {
			return fmt.Errorf("writing custom resource definition %s: %w", d.Name, err)
		}
		if _, err := fmt.Fprintf(w, "---\n%s", doc); err != nil {
			return err
		}
	}
	return nil
}

func manifests(namespace string, subject rbacv1.Subject, features ...rbac.Feature) (string, error) {
	var out strings.Builder
	if err := allDefinitions(&out); err != nil {
		return "", err
	}
	roles, err := rbac.Manifests(namespace, subject, features...)
	if err != nil {
		return "", err
	}
	out.Write(roles)
	fmt.Fprintf(&out, "---\n%s", rbac.Users())
	return out.String(), nil
}
