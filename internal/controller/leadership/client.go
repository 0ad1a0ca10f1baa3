package leadership

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Client returns a client whose writes are refused while the lease is not held. They
// are refused before they are begun and, where the client's transport is wrapped by
// [Lease.Guard], once more before they are sent.
func (l *Lease) Client(inner client.Client) client.Client {
	if l == nil {
		return inner
	}
	return &leaderClient{Client: inner, lease: l}
}

// leaderClient reads as its client does, and writes as the leader alone.
type leaderClient struct {
	client.Client
	lease *Lease
}

func (c *leaderClient) write(ctx context.Context, do func(context.Context) error) error {
	if err := c.lease.Held(); err != nil {
		return err
	}
	return do(mark(ctx))
}

func (c *leaderClient) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	return c.write(ctx, func(ctx context.Context) error { return c.Client.Create(ctx, o, opts...) })
}

func (c *leaderClient) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	return c.write(ctx, func(ctx context.Context) error { return c.Client.Update(ctx, o, opts...) })
}

func (c *leaderClient) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	return c.write(ctx, func(ctx context.Context) error { return c.Client.Patch(ctx, o, p, opts...) })
}

func (c *leaderClient) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return c.write(ctx, func(ctx context.Context) error { return c.Client.Apply(ctx, o, opts...) })
}

func (c *leaderClient) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	return c.write(ctx, func(ctx context.Context) error { return c.Client.Delete(ctx, o, opts...) })
}

func (c *leaderClient) DeleteAllOf(ctx context.Context, o client.Object, opts ...client.DeleteAllOfOption) error {
	return c.write(ctx, func(ctx context.Context) error { return c.Client.DeleteAllOf(ctx, o, opts...) })
}

func (c *leaderClient) Status() client.SubResourceWriter { return c.SubResource("status") }

func (c *leaderClient) SubResource(name string) client.SubResourceClient {
	return &leaderSubResource{SubResourceClient: c.Client.SubResource(name), of: c}
}

// leaderSubResource is leaderClient for a part of objects, such as their status.
type leaderSubResource struct {
	client.SubResourceClient
	of *leaderClient
}

func (c *leaderSubResource) Create(ctx context.Context, o, sub client.Object, opts ...client.SubResourceCreateOption) error {
	return c.of.write(ctx, func(ctx context.Context) error { return c.SubResourceClient.Create(ctx, o, sub, opts...) })
}

func (c *leaderSubResource) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	return c.of.write(ctx, func(ctx context.Context) error { return c.SubResourceClient.Update(ctx, o, opts...) })
}

func (c *leaderSubResource) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	return c.of.write(ctx, func(ctx context.Context) error { return c.SubResourceClient.Patch(ctx, o, p, opts...) })
}

func (c *leaderSubResource) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	return c.of.write(ctx, func(ctx context.Context) error { return c.SubResourceClient.Apply(ctx, o, opts...) })
}
