package arm

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"strconv"
	"time"
)

// Clock is the simulated Azure's time. It runs with the clock of package time;
// durations of the real Azure are shortened by the scale.
type Clock struct{ scale float64 }

// Now is the time.
func (Clock) Now() time.Time { return time.Now() }

// Scale is how many times faster than the real Azure everything runs.
func (c Clock) Scale() float64 { return c.scale }

// Scaled turns a duration of the real Azure into one of this server.
func (c Clock) Scaled(d time.Duration) time.Duration { return time.Duration(float64(d) / c.scale) }

// SetRetryAfter asks the client to wait for a duration of the real Azure. The
// header counts whole seconds; for what compressed time leaves over, milliseconds
// are added, which the SDK prefers.
func (c Clock) SetRetryAfter(h http.Header, d time.Duration) {
	d = c.Scaled(d)
	h.Set("Retry-After", strconv.Itoa(int(math.Ceil(d.Seconds()))))
	if d%time.Second != 0 {
		h.Set("Retry-After-Ms", strconv.Itoa(int(math.Ceil(float64(d)/float64(time.Millisecond)))))
	}
}

// Timestamp writes a time as ARM does.
func Timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.0000000Z") }

// Distribution is a log-normal one cut off at both ends. The zero value is always 0.
type Distribution struct {
	Median time.Duration
	Spread float64 // standard deviation of the logarithm; 0.3 puts two thirds within a third of the median
	Min    time.Duration
	Max    time.Duration // 0: no upper bound
}

// at gives the value for a standard normal deviate z.
func (d Distribution) at(z float64) time.Duration {
	v := time.Duration(float64(d.Median) * math.Exp(d.Spread*z))
	if v < d.Min {
		return d.Min
	}
	if d.Max > 0 && v > d.Max {
		return d.Max
	}
	return v
}

// Latencies are how long things take in the real Azure, before the time scale.
type Latencies struct {
	Read     Distribution // any GET
	Write    Distribution // any other call, to its first answer
	VMCreate Distribution // from PUT to the end of the operation
	VMFail   Distribution // from PUT to the end of an operation that finds no capacity
	Boot     Distribution // from the end of VMCreate to the kubelet's start
	VMDelete Distribution // from DELETE to the end of the operation
	NIC      Distribution // creation and deletion of a network interface
	Extend   Distribution // creation of an extension
	// PriceSheet is from the request for a price sheet to its file.
	PriceSheet Distribution
}

// Random is the source of every random choice: the same seed and the same calls
// in the same order give the same choices.
type Random struct {
	seed  uint64
	draws uint64 // decisions taken so far
}

// Hash is a number that depends on the seed and the parts alone.
func (r *Random) Hash(parts ...string) uint64 {
	h := fnv.New64a()
	h.Write(binary.LittleEndian.AppendUint64(nil, r.seed))
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// Draw is the next random number in [0, 1).
func (r *Random) Draw() float64 {
	r.draws++
	return float64(r.Hash("draw", strconv.FormatUint(r.draws, 10))>>11) / (1 << 53)
}

// Sample takes a duration of the distribution, before the time scale.
func (r *Random) Sample(d Distribution) time.Duration {
	if d.Spread == 0 {
		return d.at(0)
	}
	// Box-Muller; 1-draw keeps the logarithm finite.
	z := math.Sqrt(-2*math.Log(1-r.Draw())) * math.Cos(2*math.Pi*r.Draw())
	return d.at(z)
}

// IDs is the sequence behind IDs, ETags and the order of tasks. It is part of the
// saved state, so that no ID is given twice.
type IDs struct {
	random   *Random
	sequence uint64 // numbers given so far
}

// Next is the next number, from 1.
func (i *IDs) Next() uint64 {
	i.sequence++
	return i.sequence
}

// GUID makes an ID in the form of a GUID out of the sequence.
func (i *IDs) GUID() string {
	n := i.Next()
	h := i.random.Hash("guid", fmt.Sprint(n))
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", uint32(n), uint16(h), uint16(h>>16)&0xfff, uint16(h>>32)&0xfff, h&0xffffffffffff)
}

// Snapshot is how many numbers were given.
func (i *IDs) Snapshot() uint64 { return i.sequence }

// Restore goes on after the numbers that an earlier server gave.
func (i *IDs) Restore(sequence uint64) { i.sequence = sequence }
