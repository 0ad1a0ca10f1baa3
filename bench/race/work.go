package race

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// work gives the work and waits for its end.
func (t *turn) work(ctx context.Context, began time.Time) error {
	course := t.course
	if err := t.give(ctx, began); err != nil {
		return err
	}
	if course.Rolled {
		if err := t.rolledOut(ctx); err != nil {
			return err
		}
		t.result.AllRunning = time.Since(began)
	}
	if course.Frees() {
		if err := sleep(ctx, time.Until(began.Add(freeFor))); err != nil {
			return err
		}
		if !course.Rolled {
			t.result.AllRunning = time.Since(began) - t.observer.look().quiet
		}
		return nil
	}
	want := podsOf(course.Before) + podsOf(course.Added) + int(course.Trickle)
	err := t.observer.until(ctx, "all pods run", runWithin, func(s seen) bool { return s.running >= want })
	t.result.AllRunning = time.Since(began)
	return err
}

// give gives the work, which may take a while.
func (t *turn) give(ctx context.Context, began time.Time) error {
	course := t.course
	for _, d := range course.Before {
		var err error
		switch {
		case course.Scaled > 0:
			err = t.scale(ctx, d.Name, course.Scaled)
		case course.Rolled:
			err = t.patch(ctx, d.Name, `{"spec":{"template":{"metadata":{"annotations":{"revision":"next"}}}}}`)
		}
		if err != nil {
			return err
		}
	}
	if course.Waves > 1 {
		return t.growInWaves(ctx, began)
	}
	if err := t.add(ctx); err != nil {
		return err
	}
	for i := range course.Trickle {
		if err := t.scale(ctx, course.Added[0].Name, i+1); err != nil {
			return err
		}
		if err := sleep(ctx, time.Until(began.Add(time.Duration(i+1)*time.Second))); err != nil {
			return err
		}
	}
	return nil
}

// add creates all that the course adds.
func (t *turn) add(ctx context.Context) error {
	if t.course.Bare {
		return t.createBare(ctx, t.course.Added)
	}
	return t.create(ctx, t.course.Added)
}

// growInWaves creates the course's Deployments with a part of their pods and lets them grow to
// their size.
func (t *turn) growInWaves(ctx context.Context, began time.Time) error {
	for wave := range t.course.Waves {
		for _, d := range t.course.Added {
			grown := *d.Spec.Replicas * (wave + 1) / t.course.Waves
			if wave > 0 {
				if err := t.scale(ctx, d.Name, grown); err != nil {
					return err
				}
				continue
			}
			first := d.DeepCopy()
			first.Spec.Replicas = &grown
			if err := t.create(ctx, []*appsv1.Deployment{first}); err != nil {
				return err
			}
		}
		if wave+1 == t.course.Waves {
			break
		}
		if err := sleep(ctx, time.Until(began.Add(time.Duration(wave+1)*waveAfter))); err != nil {
			return err
		}
	}
	return nil
}

// rolledOut waits until the Deployments that ran before have none but pods of their new
// template.
func (t *turn) rolledOut(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, runWithin, fmt.Errorf("after %s the rollout is not done", runWithin))
	defer cancel()
	for {
		all, err := t.kube.AppsV1().Deployments(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		if err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		done := !slices.ContainsFunc(all.Items, func(d appsv1.Deployment) bool {
			s, want := d.Status, *d.Spec.Replicas
			return s.ObservedGeneration < d.Generation || s.UpdatedReplicas != want || s.Replicas != want || s.AvailableReplicas != want
		})
		if done {
			return nil
		}
		if err := sleep(ctx, 200*time.Millisecond); err != nil {
			return context.Cause(ctx)
		}
	}
}

func (t *turn) create(ctx context.Context, deployments []*appsv1.Deployment) error {
	for _, d := range deployments {
		if _, err := t.kube.AppsV1().Deployments(d.Namespace).Create(ctx, d, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create Deployment %s: %w", d.Name, err)
		}
	}
	return nil
}

// bareLabel is on pods that have no owner, which nothing else deletes.
const bareLabel = "race-bare"

// bareAtOnce is how many pods without an owner are created at the same time.
const bareAtOnce = 5

// createBare creates the pods of Deployments without these, one of each in turn.
func (t *turn) createBare(ctx context.Context, deployments []*appsv1.Deployment) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(bareAtOnce)
	for i := range podsOf(deployments) {
		d := deployments[i%len(deployments)]
		labels := maps.Clone(d.Spec.Template.Labels)
		labels[bareLabel] = "true"
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{GenerateName: d.Name + "-", Namespace: d.Namespace, Labels: labels},
			Spec:       d.Spec.Template.Spec,
		}
		group.Go(func() error {
			if _, err := t.kube.CoreV1().Pods(d.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("create a pod of %s: %w", d.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func (t *turn) scale(ctx context.Context, deployment string, replicas int32) error {
	return t.patch(ctx, deployment, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
}

func (t *turn) patch(ctx context.Context, deployment, patch string) error {
	_, err := t.kube.AppsV1().Deployments(metav1.NamespaceDefault).Patch(
		ctx, deployment, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("patch Deployment %s: %w", deployment, err)
	}
	return nil
}

func podsOf(deployments []*appsv1.Deployment) int {
	n := 0
	for _, d := range deployments {
		n += int(*d.Spec.Replicas)
	}
	return n
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
