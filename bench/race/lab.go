package race

import (
	"context"

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
	return &Lab{l, o}, err
}
