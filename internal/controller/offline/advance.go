package offline

import "fmt"

// advanceNote says what becomes of reservations and savings plans, where there are any.
func advanceNote(has bool, told *Told) string {
	switch {
	case !has:
		return ""
	case !told.Advance:
		return "; reservations and savings plans are left out"
	case len(told.Machines) == 0:
		return "; reservations and savings plans count as unused, since no on-demand machine of a NodePool is known here"
	case len(told.Machines) == 1:
		return "; reservations and savings plans count, less what 1 on-demand machine of NodePools uses; others are assumed to use none"
	}
	return fmt.Sprintf("; reservations and savings plans count, less what %d on-demand machines of NodePools use; others are assumed "+
		"to use none", len(told.Machines))
}
