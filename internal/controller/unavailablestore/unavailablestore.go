// Package unavailablestore keeps what Azure has refused, and which purchases led to
// nothing, in a ConfigMap, so that a controller that starts does not try all of it
// again, and so that people can read it (nap explain offer).
//
// The sources know what there is to remember and in which form; this package
// carries it to and fro, on the leader alone. Losing it does no harm but a
// refusal or a purchase for each entry, so nothing waits for it. Start with [Loop].
package unavailablestore

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/nodeautoprovision/nap/api/v1beta1"
)

// Name and Label are where the memory is: the ConfigMap, in the namespace of the
// controller's lease, and the label by which it is found in whatever namespace. Key and
// PurchasesKey are the keys of what Azure has refused and of purchases that led to
// nothing.
const (
	Name         = "nap-scarcity"
	Key          = "blocks.json"
	PurchasesKey = "purchases.json"
	Label        = v1beta1.LabelStore + "=" + labelValue

	labelValue = "scarcity"
)

// every is how often the loop looks whether there is something new. What is
// learned in the last seconds before a crash is lost.
const every = 2 * time.Second

// Source is what there is to remember.
type Source interface {
	// Revision changes whenever Marshal would write something else.
	Revision() uint64
	// Marshal writes everything down, in well below a megabyte.
	Marshal() ([]byte, error)
	// Unmarshal adds what an earlier process wrote down. An error changes nothing.
	Unmarshal([]byte) error
}

// Loop carries the memory of sources. It is a manager's runnable.
type Loop struct {
	// Reader reads the API server itself: a cache would watch every ConfigMap of
	// the cluster, which nap may not.
	Reader    client.Reader
	Writer    client.Writer
	Namespace string
	// Sources are what there is to remember, by key of the ConfigMap.
	Sources map[string]Source
	Clock   clock.Clock
}

// NeedLeaderElection makes the manager run the loop on the leader alone.
func (l *Loop) NeedLeaderElection() bool { return true }

// Start reads the memory once, and writes it whenever it has changed, until the
// context ends.
func (l *Loop) Start(ctx context.Context) error {
	logger := log.FromContext(ctx).WithValues("ConfigMap", l.Namespace+"/"+Name)
	for ctx.Err() == nil {
		err := l.restore(ctx)
		if err == nil {
			break
		}
		logger.Error(err, "reading what an earlier controller wrote down failed, trying again")
		l.pause(ctx)
	}
	var written uint64
	for ctx.Err() == nil {
		if now := l.revision(); now != written {
			if err := l.save(ctx); err != nil && ctx.Err() == nil {
				logger.Error(err, "writing down what Azure has refused and which purchases failed did not succeed, trying again")
			} else {
				written = now
			}
		}
		l.pause(ctx)
	}
	return nil
}

func (l *Loop) pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-l.Clock.After(every):
	}
}

// revision changes whenever there is something new to write.
func (l *Loop) revision() uint64 {
	var sum uint64
	for _, s := range l.Sources {
		sum += s.Revision()
	}
	return sum
}

// restore gives the sources what is in the ConfigMap. Content that a source does
// not understand is of another version or of another program: it is passed over.
func (l *Loop) restore(ctx context.Context) error {
	var stored corev1.ConfigMap
	err := l.Reader.Get(ctx, client.ObjectKey{Namespace: l.Namespace, Name: Name}, &stored)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading ConfigMap %s/%s: %w", l.Namespace, Name, err)
	}
	for key, source := range l.Sources {
		if stored.Data[key] == "" {
			continue
		}
		if err := source.Unmarshal([]byte(stored.Data[key])); err != nil {
			log.FromContext(ctx).Error(err, "what an earlier controller wrote down cannot be read and is passed over",
				"ConfigMap", l.Namespace+"/"+Name, "key", key)
		}
	}
	return nil
}

// save makes the ConfigMap what the sources say.
func (l *Loop) save(ctx context.Context) error {
	data := map[string]string{}
	for key, source := range l.Sources {
		text, err := source.Marshal()
		if err != nil {
			return err
		}
		data[key] = string(text)
	}
	wanted := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: l.Namespace, Name: Name,
			Labels: map[string]string{"app.kubernetes.io/name": "nap", v1beta1.LabelStore: labelValue},
		},
		Data: data,
	}
	// There is one leader, and nothing else writes it: no lock is needed.
	err := l.Writer.Update(ctx, wanted)
	if apierrors.IsNotFound(err) {
		wanted.ResourceVersion = ""
		err = l.Writer.Create(ctx, wanted)
	}
	if err != nil {
		return fmt.Errorf("writing ConfigMap %s/%s: %w", l.Namespace, Name, err)
	}
	return nil
}
