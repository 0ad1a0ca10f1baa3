package binpack

// polish exchanges single items of the bin for others that are worth more and
// fit in their place, and adds what fits, until no exchange helps or rounds are
// spent. It raises the value of a filling that is nearly full. classes must be
// ordered by falling value.
func (f *filler) polish(classes []int32, rem []int, value []float64, rounds int) {
	for range rounds {
		gain, out, in := 1e-9, int32(-1), int32(-1)
		for _, a := range f.touched {
			f.lend(a, 1)
			if b := f.dearest(classes, rem, value, a, value[a]+gain); b >= 0 {
				gain, out, in = value[b]-value[a], a, b
			}
			f.lend(a, -1)
		}
		if out < 0 {
			return
		}
		f.take(out, 1)
		f.put(in, 1)
		for _, b := range classes {
			if n := f.room(b, rem[b]-int(f.got[b])); n > 0 {
				f.put(b, n)
			}
		}
	}
}

// dearest returns the class of most value, and of more than floor, of which an
// item fits in place of one of class a, whose room has been lent, or -1.
func (f *filler) dearest(classes []int32, rem []int, value []float64, a int32, floor float64) int32 {
	c := f.c
	for n, b := range classes {
		if value[b] <= floor {
			f.steps += int64(n+1) / 4
			return -1
		}
		cl := &c.classes[b]
		if fits(cl.size, f.free) && b != a && rem[b] > int(f.got[b]) && int(f.got[b]) < cl.perBin &&
			(len(cl.conf) == 0 || !f.blockedBut(b, a)) {
			f.steps += int64(n+1) / 4
			return b
		}
	}
	f.steps += int64(len(classes)) / 4
	return -1
}

// lend makes the room of n items of class i free without taking them out.
func (f *filler) lend(i int32, n int) {
	for d, v := range f.c.classes[i].size {
		f.free[d] += v * int64(n)
	}
}

// blockedBut tells whether a conflict would keep class i out of the bin if one
// item of class but left it.
func (f *filler) blockedBut(i, but int32) bool {
	for _, id := range f.c.classes[i].conf {
		o := f.owner[id]
		if o != 0 && o != i+1 && !(o == but+1 && f.got[but] == 1) {
			return true
		}
	}
	return false
}
