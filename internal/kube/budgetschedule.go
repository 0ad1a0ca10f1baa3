package kube

import (
	"slices"
	"time"

	"github.com/robfig/cron/v3"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/model"
)

// budgetSchedule is when a budget with a schedule is in force, and for which reasons; none
// means all.
type budgetSchedule struct {
	begins  cron.Schedule
	lasts   time.Duration
	reasons []v1.DisruptionReason
}

// joinedAtMost bounds the windows that are followed where each begins before the one before
// it has ended, as those of a schedule which never pauses do without end.
const joinedAtMost = 64

// budgetEnds says when the schedules of these budgets end next for a reason; nil where none
// has one. Budgets that cannot be read allow nothing for good, so they have no end.
func budgetEnds(budgets []v1.Budget) func(now time.Time, reason model.DisruptionReason) time.Time {
	var schedules []budgetSchedule
	for i := range budgets {
		b := &budgets[i]
		if b.Schedule == nil || b.Duration == nil {
			continue
		}
		if begins, err := cron.ParseStandard("TZ=UTC " + *b.Schedule); err == nil {
			schedules = append(schedules, budgetSchedule{begins: begins, lasts: b.Duration.Duration, reasons: b.Reasons})
		}
	}
	if schedules == nil {
		return nil
	}
	return func(now time.Time, reason model.DisruptionReason) time.Time {
		var next time.Time
		for i := range schedules {
			s := &schedules[i]
			if s.reasons != nil && !slices.Contains(s.reasons, v1.DisruptionReason(reason)) {
				continue
			}
			if end := s.end(now.UTC()); !end.IsZero() && (next.IsZero() || end.Before(next)) {
				next = end
			}
		}
		return next
	}
}

// end is when the budget is not in force any more, zero where it is not in force now. Of
// windows without a pause it is the end of the last one that is followed.
func (s *budgetSchedule) end(now time.Time) time.Time {
	begin := s.begins.Next(now.Add(-s.lasts))
	if begin.IsZero() || begin.After(now) {
		return time.Time{}
	}
	for range joinedAtMost {
		next := s.begins.Next(begin)
		if next.IsZero() || next.After(begin.Add(s.lasts)) {
			break
		}
		begin = next
	}
	return begin.Add(s.lasts)
}
