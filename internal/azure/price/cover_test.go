package price

import (
	"fmt"
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

const d4 = "Standard_D4s_v5"

// reserved is a book with some machines reserved at $0.09.
func reserved(t *testing.T, count int) *Book {
	t.Helper()
	b := newBook(t)
	b.SetTerms(&Terms{Reservations: []Reservation{{Size: d4, Count: count, Hourly: 0.09}}})
	return b
}

// A list of machines need not show what was bought, went or was asked for after Azure was asked.
func TestListKeepsWhatHappenedMeanwhile(t *testing.T) {
	b := reserved(t, 5)
	b.Bought("old", d4, model.OnDemand, false)
	b.Bought("going", d4, model.OnDemand, false)
	if !b.Take("buying", d4) {
		t.Fatal("nothing is left for the third of five")
	}
	asked := b.Change()
	b.Bought("new", d4, model.OnDemand, false)
	b.Gone("going")
	b.SetMachines(map[string]string{"old": d4, "going": d4}, asked)
	if left := b.Lines()[0].Left; left != 2 {
		t.Errorf("%d are left beside an old one, a new one and one that is being bought, want 2 of 5", left)
	}
	b.Bought("buying", d4, model.OnDemand, false)
	b.SetMachines(map[string]string{"new": d4}, b.Change())
	if left := b.Lines()[0].Left; left != 4 {
		t.Errorf("%d are left beside the only machine on the list, want 4 of 5", left)
	}
}

// Cover goes to as many purchases as there is: to those whose plan counts on it, though others
// were faster.
func TestCoverIsTakenBeforeMachineIsBought(t *testing.T) {
	b := reserved(t, 1)
	b.Bought("beside", d4, model.OnDemand, true)
	if _, covered := b.CoverOf("beside"); covered {
		t.Error("a machine has cover that its plan did not count on")
	}
	for range 2 { // asking once more takes nothing more
		if !b.Take("first", d4) {
			t.Error("the claim whose plan counts on the cover gets none")
		}
	}
	if b.Take("second", d4) {
		t.Error("two claims have the cover of one")
	}
	if _, covered := b.CoverOf("first"); !covered {
		t.Error("cover that was taken is not the claim's")
	}
	b.Gone("first") // nothing was bought
	b.Gone("beside")
	if !b.Take("second", d4) {
		t.Error("cover is gone though nothing was bought with it")
	}
}

// A savings plan pays for as many machines as its amount divided by the price.
func TestSavingsPlanCoversWholeNumberOfMachines(t *testing.T) {
	for price, count := range map[float64]int{0.201: 5, 0.113: 9, 0.143: 7} {
		b := newBook(t)
		b.SetTerms(&Terms{SavingsPlans: []SavingsPlan{{Name: "team", Hourly: price * float64(count), Prices: map[string]float64{d4: price}}}})
		covered := 0
		for b.Take(fmt.Sprint(covered), d4) {
			covered++
		}
		if covered != count {
			t.Errorf("$%v cover %d machines of $%v, want %d", price*float64(count), covered, price, count)
		}
	}
}
