package binpack

import (
	"time"

	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/meter"
)

// Problem is what to pack and what may be bought to pack it in.
//
// Sizes, capacities, costs and counts that are negative or of the wrong length
// make the class unplaceable or the bin unusable; they never spoil the rest.
type Problem struct {
	// Dims is the number of resource dimensions of every Size and Capacity.
	Dims    int
	Classes []Class
	Bins    []Bin
	Shared  []Shared
	// Budget bounds the improvement after the first feasible packing. Zero means
	// the first feasible packing and its bound, nothing more.
	Budget time.Duration
	// SmallFirst packs the smaller items of a priority first where limits leave some out.
	SmallFirst bool
	// Unproven leaves out the bound of a first feasible packing, for callers that
	// have a better one. With a Budget it changes nothing: improving needs a bound.
	Unproven bool
	// Clock tells how long the caller has been waiting; the search ends when that
	// passes Budget. It is read from two goroutines at a time. Without a clock the search
	// ends after the number of steps that a machine with two cores does in about
	// Budget, so the result depends on nothing but the Problem.
	Clock meter.Clock
	// Seed varies the random choices of the improvement.
	Seed uint64
}

// Class is a number of identical items.
type Class struct {
	// Size is what one item takes of every dimension.
	Size  []int64
	Count int
	// Bins are the bin types, by their place in [Problem.Bins], that may hold the item, as far as anything but
	// size, cap and conflicts is concerned. Classes may share one set.
	Bins bitset.Set
	// PerBin is the most items of this class that one bin may hold; 0 is no cap.
	PerBin int
	// Conflicts are ids; classes that share an id never share a bin. A class
	// whose items also exclude each other has PerBin 1.
	Conflicts []int32
	// Priority decides which items go first when limits leave some items out.
	Priority int32
}

// Bin is a type of bin.
type Bin struct {
	Capacity []int64
	// Cost in micro-dollars per hour.
	Cost int64
	// Max is the most bins of this type; -1 is no limit.
	Max int
	// Fixed marks a bin that exists already: there is one of it, it costs
	// nothing, and it is used before anything is bought.
	Fixed bool
}

// Shared is a limit across bin types: the sum of Use over all bins in the
// solution stays within Left.
type Shared struct {
	Left int64
	// Use is the consumption of one bin, by bin type; missing entries are 0.
	Use []int64
}

// ClassCount is a number of items of one class.
type ClassCount struct{ Class, Count int }

// Packed is a pattern: a bin of type Type holding Counts, Times times.
type Packed struct {
	Type, Times int
	// Counts are ordered by class.
	Counts []ClassCount
}

// Solution is a packing with its proof.
type Solution struct {
	// Bins are the used bins: fixed ones first, then by type.
	Bins []Packed
	// Unplaced is, by class, how many items found no place.
	Unplaced []int
	// Cost of all bins in micro-dollars per hour.
	Cost int64
	// LowerBound is a cost below which no packing of the placed items exists.
	LowerBound int64
	// FirstCost is the cost of the first feasible packing. Cost is above it only
	// where the first packing left out items that found a place later.
	FirstCost int64
	// Rounds counts the improvements that were tried.
	Rounds int
	// Steps counts elementary work, the measure of effort that is the same on
	// every machine.
	Steps int64
}
