package cloud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/scenario"
)

// Play plays a scenario in the lab that runs in dir, and tells the story to out.
func Play(ctx context.Context, dir string, story *scenario.Scenario, out io.Writer) error {
	state, err := lab.Inspect(dir)
	if err != nil {
		return err
	}
	if !state.Supervisor.Alive() {
		return fmt.Errorf("the lab in %s is not running (%s); start it with: nap lab up%s", dir, state.Phase, lab.DirFlag(dir))
	}
	config, err := clientcmd.BuildConfigFromFlags("", state.Kubeconfig)
	if err != nil {
		return fmt.Errorf("read the lab's kubeconfig: %w", err)
	}
	config.QPS = -1
	azure, err := Open(state.Dir)
	if err != nil {
		return err
	}
	defer azure.Close()
	return scenario.Run(ctx, story, scenario.Stage{
		Kubernetes: config,
		Apply:      func(ctx context.Context, manifest []byte) error { return lab.Apply(ctx, config, manifest) },
		Azure:      azure,
		Lab:        killer(state.Dir),
		Out:        out,
	})
}

// killer kills parts of the lab in a folder.
type killer string

// killPatience is how long a part that is being restarted may take to be there
// to be killed.
const killPatience = time.Minute

// Kill implements scenario.Lab.
func (k killer) Kill(ctx context.Context, part string) error {
	ctx, cancel := context.WithTimeout(ctx, killPatience)
	defer cancel()
	for {
		err := lab.Kill(string(k), part)
		if err == nil || !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s did not come back to be killed again: %w", part, err)
		}
	}
}
