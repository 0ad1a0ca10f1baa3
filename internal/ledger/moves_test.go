package ledger

import (
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// removed is a machine that a command removes.
func removed(m Seen, c *fleet.Command) Seen {
	m.Command, m.End = c, EndMoved
	return m
}

func TestMoveIsJudgedByWhatWasPaid(t *testing.T) {
	b := NewBook(nil)
	b.Observe(&Look{At: at(0)})
	a, c := seen("a", 0, 3.6), seen("c", 0, 3.6)
	b.Observe(&Look{At: at(10), Machines: []Seen{a, c}})
	command := &fleet.Command{ID: "x1", Reason: "Underutilized", Begun: at(11), Saving: model.USD(5.4), Evictions: 7, Replacements: []string{"n"}}
	small := seen("n", 20, 1.8)
	small.Move = "x1"
	b.Observe(&Look{At: at(20), Machines: []Seen{removed(a, command), removed(c, command), small}})
	b.Observe(&Look{At: at(30), Machines: []Seen{removed(a, command), removed(c, command), small}})
	b.Observe(&Look{At: at(40), Machines: []Seen{small}, Gone: map[string]time.Time{"a": at(40), "c": at(40)}})
	m := &b.Moving[0]
	if m.State != MoveDone || !near(m.Before, 7.2) || !near(m.After, 1.8) || !near(m.Spent, 0.01) || m.Evictions != 7 || m.Paid() {
		t.Fatalf("the move is %+v", m)
	}
	b.Observe(&Look{At: at(50), Machines: []Seen{small}})
	if m = &b.Moving[0]; !near(m.Saved, 0.015) || !m.Paid() {
		t.Errorf("after ten seconds it has saved $%.4f, want $0.0150; paid: %v", m.Saved, m.Paid())
	}
	b.Observe(&Look{At: at(60)}) // the replacement is gone
	if len(b.Moving) != 0 || len(b.Moved) != 1 || !near(b.Moved[0].Saved, 0.015) {
		t.Errorf("the move that earns no more is %+v", b.Moved)
	}
}

func TestMoveThatIsRolledBackHasNotPaid(t *testing.T) {
	b := NewBook(nil)
	b.Observe(&Look{At: at(0)})
	a, n := seen("a", 0, 3.6), seen("n", 10, 1.8)
	command := &fleet.Command{ID: "x1", Begun: at(5), Replacements: []string{"n"}}
	b.Observe(&Look{At: at(10), Machines: []Seen{removed(a, command), n}})
	b.Observe(&Look{At: at(20), Machines: []Seen{removed(a, command), n}})
	b.Observe(&Look{At: at(30), Machines: []Seen{a}, Gone: map[string]time.Time{"n": at(30)}})
	if len(b.Moved) != 1 || b.Moved[0].State != MoveRolledBack || !near(b.Moved[0].Spent, 0.01) || b.Moved[0].Paid() {
		t.Errorf("the move is %+v", b.Moved)
	}
}

func TestEmptyNodeEarnsUntilThePoolBuysAgain(t *testing.T) {
	b := NewBook(nil)
	b.Observe(&Look{At: at(0)})
	a := seen("a", 0, 3.6)
	command := &fleet.Command{ID: "x1", Reason: "Empty", Begun: at(5), Saving: model.USD(3.6)}
	b.Observe(&Look{At: at(10), Machines: []Seen{removed(a, command)}})
	b.Observe(&Look{At: at(20)})
	b.Observe(&Look{At: at(30)})
	if !near(b.Moving[0].Saved, 0.01) {
		t.Errorf("it has saved $%.4f, want $0.0100", b.Moving[0].Saved)
	}
	b.Observe(&Look{At: at(40), Machines: []Seen{seen("b", 35, 3.6)}})
	if len(b.Moved) != 1 || !near(b.Moved[0].Saved, 0.01) {
		t.Errorf("the moves that earn no more are %+v", b.Moved)
	}
}

// A controller that was killed while a move was under way finds it in the book, and its
// nodes gone.
func TestMoveOutlivesTheController(t *testing.T) {
	b := NewBook(nil)
	b.Observe(&Look{At: at(0)})
	command := &fleet.Command{ID: "x1", Begun: at(5)}
	b.Observe(&Look{At: at(10), Machines: []Seen{removed(seen("a", 0, 3.6), command)}})
	data, err := b.Pack()
	if err != nil {
		t.Fatal(err)
	}
	if b, err = Unpack(data); err != nil {
		t.Fatal(err)
	}
	b.Observe(&Look{At: at(60)})
	if len(b.Moving) != 1 || b.Moving[0].State != MoveDone || len(b.Ended) != 1 || b.Ended[0].End != EndMoved {
		t.Errorf("the book has moves %+v and machines %+v", b.Moving, b.Ended)
	}
}
