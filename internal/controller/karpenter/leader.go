package karpenter

import (
	"cmp"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/karpenter/pkg/operator/options"

	"github.com/nodeautoprovision/nap/internal/controller/leadership"
)

// leaseOf is the lock on the lease of the leader. Its holder is named by the pod's name:
// HOSTNAME, which container runtimes set, or else the name of the machine. A request that hangs ends
// at half of the time in which the lease is to be renewed, so that it does not cost the lead.
func leaseOf(config *rest.Config, opts *options.Options, election leadership.Election) (resourcelock.Interface, error) {
	machine, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("naming the holder of the lease: %w", err)
	}
	//nolint:forbidigo // no setting: the same that the operating system tells, for this container
	identity := cmp.Or(os.Getenv("HOSTNAME"), machine) + "_" + string(uuid.NewUUID())
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election")
	config.Timeout = election.RenewDeadline / 2
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("the client of the lease: %w", err)
	}
	events := record.NewBroadcaster()
	events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events(opts.LeaderElectionNamespace)})
	return resourcelock.New(resourcelock.LeasesResourceLock, opts.LeaderElectionNamespace, opts.LeaderElectionName,
		client.CoreV1(), client.CoordinationV1(), resourcelock.ResourceLockConfig{
			Identity: identity, EventRecorder: events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: identity}),
		})
}
