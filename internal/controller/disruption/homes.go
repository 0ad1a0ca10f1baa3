package disruption

import (
	"maps"
	"slices"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// homesOf names the places that a move's pods are to have: nodes that exist, and
// the claims of its replacements, whose names are chosen.
func homesOf(input *fleet.DisruptionInput, mv *model.Command, m *move) map[model.PodRef]string {
	homes := map[model.PodRef]string{}
	add := func(pods []model.ClassPods, name string) {
		for _, ref := range input.Movable(pods) {
			homes[ref] = name
		}
	}
	for i := range mv.Placements {
		add(mv.Placements[i].Pods, input.Problem.Nodes[mv.Placements[i].Node].Name)
	}
	for i := range mv.New {
		add(mv.New[i].Pods, m.Replace[i].Claim)
	}
	return homes
}

// planned are the homes of all pods that still wait for their eviction, but for
// those of some moves. Without them a pod would be counted on any room that there
// is, and one move would be told that the pods of another have taken its room.
func (l *Loop) planned(but []*move) map[model.PodRef]string {
	out := map[model.PodRef]string{}
	for _, m := range slices.Concat(l.moves, l.settling) {
		if m.failed == "" && !slices.Contains(but, m) {
			maps.Copy(out, m.homes)
		}
	}
	return out
}
