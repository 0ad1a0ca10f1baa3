package worst

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

// most is what one pod may allocate beside what a plain one does, in bytes. What is
// allocated is the same on every machine, unlike the time that it takes.
const most = 50 << 20

// maxObject is how many bytes of JSON an API server stores of one object.
const maxObject = 3 << 19

// largest is the mix of one feature about as large as an API server stores it.
func largest(f Feature) Mix {
	const some = 1000
	each := max(1, (Mix{f.Name: some}.Bytes()-Mix{}.Bytes())/some)
	return Mix{f.Name: maxObject / (each + 3)} // numbers grow by three digits
}

func TestAnyPodOfOneAndAHalfMegabytesCostsLittle(t *testing.T) {
	b, err := NewBench()
	if err != nil {
		t.Fatal(err)
	}
	plain, err := b.Plan(t.Context(), Mix{}.Pod(), 1)
	if err != nil || plain.Reason != "" {
		t.Fatalf("a plain pod: %+v, %v", plain, err)
	}
	all := Mix{}
	for _, f := range Features() {
		large := largest(f)
		for name, mix := range map[string]Mix{"largest": large, "planned": {f.Name: f.Planned}} {
			cost, err := b.Plan(t.Context(), mix.Pod(), 1)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%-32s %-8s n=%-7d %8d KB %8s %s", f.Name, name, mix[f.Name], cost.Allocated>>10, cost.Time.Round(1e6), cost.Reason)
			if cost.Allocated > plain.Allocated+most {
				t.Errorf("%s %v: planning it allocates %d MB, allowed are %d", f.Name, mix, cost.Allocated>>20, most>>20)
			}
			if name == "planned" && cost.Reason == model.ReasonAsksTooMuch {
				t.Errorf("%s %v is refused", f.Name, mix)
			}
		}
		all[f.Name] = f.Planned / 8
	}
	cost, err := b.Plan(t.Context(), all.Pod(), 1)
	if err != nil || cost.Reason == model.ReasonAsksTooMuch || cost.Allocated > plain.Allocated+most {
		t.Errorf("everything at once: %+v, %v", cost, err)
	}
	t.Logf("everything at once: %d KB in %s, %s", cost.Allocated>>10, cost.Time, cost.Reason)
}
