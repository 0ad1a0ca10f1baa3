package consolidate_test

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/planner/plannertest"
)

func TestMain(m *testing.M) { plannertest.Main(m) }
