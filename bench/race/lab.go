package race

import (
	"context"
	"errors"

	"github.com/nodeautoprovision/nap/bench/onlab"
)

// Lab is a lab on which engines race in turns.
type Lab struct {
	*onlab.Lab
	observer *observer
}

// Start starts a lab in dir.
func Start(ctx context.Context, programs onlab.Programs, dir string) (*Lab, error) {
	l, err := onlab.Start(ctx, programs, dir, []byte(policy))
	if err != nil {
		return nil, err
	}
	o, err := observe(ctx, l.Config)
	if err != nil {
		return nil, errors.Join(err, l.Stop())
	}
	return &Lab{l, o}, nil
}
