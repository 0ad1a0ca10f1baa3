// Package placementscore asks Azure how likely spot machines are to be placed, size by
// size and zone by zone, so that of offerings that cost the same the likelier one
// is asked for first. Scores are an estimate of Azure's and promise nothing; they
// order, and never exclude. Start with [Scorer].
package placementscore

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

const (
	apiVersion = "2025-06-05"
	// MostSizes is how many sizes Azure takes in one question.
	MostSizes = 5
	// believedFor is how long a score is believed. Capacity moves within minutes,
	// and Azure limits how often it may be asked.
	believedFor = 10 * time.Minute
	// patience is how long a purchase waits for scores.
	patience = 2 * time.Second
	// desiredCount is how many machines Azure is asked about.
	desiredCount = 10
)

// Score is how likely a spot machine is to be placed; larger is better. What
// Azure does not know lies between Low and Medium.
type Score int

// The scores of Azure.
const (
	Low Score = iota - 1
	Unknown
	Medium
	High
)

func read(text string) Score {
	switch text {
	case "High":
		return High
	case "Medium":
		return Medium
	case "Low":
		return Low
	}
	return Unknown
}

type place struct{ size, zone string }

// Scorer remembers scores. It is safe for concurrent use.
type Scorer struct {
	arm            *arm.Client
	path, location string
	now            func() time.Time

	// turn is held by the one call that asks Azure while others wait for its answer.
	turn  chan struct{}
	mu    sync.Mutex
	asked map[string]time.Time // by size
	known map[place]Score
}

// NewScorer returns a scorer for a region of a subscription.
func NewScorer(subscription, location string, credential azcore.TokenCredential,
	options *arm.ClientOptions, now func() time.Time) (*Scorer, error) {
	client, err := arm.NewClient("nap/placement", "v1.0.0", credential, options)
	if err != nil {
		return nil, fmt.Errorf("make a client for placement scores: %w", err)
	}
	return &Scorer{
		arm: client, location: location, now: now,
		path: "/subscriptions/" + subscription + "/providers/Microsoft.Compute/locations/" + location + "/placementScores/spot/generate",
		turn: make(chan struct{}, 1), asked: map[string]time.Time{}, known: map[place]Score{},
	}, nil
}

// Of is what is known of a size in an Azure zone, "" for placement without one.
func (s *Scorer) Of(size, zone string) Score {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[place{size, zone}]
}

// Refresh asks Azure for the scores of those sizes, at most [MostSizes] of them,
// that were not asked for lately. A size that was asked for in vain counts as
// asked for, so that a subscription without scores is not held up.
func (s *Scorer) Refresh(ctx context.Context, sizes []string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	old := s.old(sizes)
	if len(old) == 0 {
		return nil
	}
	scores, err := s.ask(ctx, old)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, size := range old {
		s.asked[size] = s.now()
		for p := range s.known {
			if p.size == size {
				delete(s.known, p)
			}
		}
	}
	for _, e := range scores {
		s.known[place{e.SKU, e.Zone}] = read(e.Score)
	}
	return err
}

func (s *Scorer) old(sizes []string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, size := range sizes {
		if at, ok := s.asked[size]; (!ok || s.now().Sub(at) >= believedFor) && len(out) < MostSizes {
			out = append(out, size)
		}
	}
	return out
}

type scored struct {
	SKU   string `json:"sku"`
	Zone  string `json:"availabilityZone"`
	Score string `json:"score"`
}

func (s *Scorer) ask(ctx context.Context, sizes []string) ([]scored, error) {
	type size struct {
		SKU string `json:"sku"`
	}
	question := struct {
		Locations []string `json:"desiredLocations"`
		Sizes     []size   `json:"desiredSizes"`
		Count     int      `json:"desiredCount"`
		Zones     bool     `json:"availabilityZones"`
	}{Locations: []string{s.location}, Count: desiredCount, Zones: true}
	for _, name := range sizes {
		question.Sizes = append(question.Sizes, size{name})
	}
	r, err := runtime.NewRequest(ctx, http.MethodPost, runtime.JoinPaths(s.arm.Endpoint(), s.path))
	if err != nil {
		return nil, err
	}
	query := r.Raw().URL.Query()
	query.Set("api-version", apiVersion)
	r.Raw().URL.RawQuery = query.Encode()
	if err := runtime.MarshalAsJSON(r, question); err != nil {
		return nil, err
	}
	answer, err := s.arm.Pipeline().Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask for the placement scores of %s: %w", strings.Join(sizes, ", "), err)
	}
	if !runtime.HasStatusCode(answer, http.StatusOK) {
		return nil, fmt.Errorf("ask for the placement scores of %s: %w", strings.Join(sizes, ", "), runtime.NewResponseError(answer))
	}
	var out struct {
		Scores []scored `json:"placementScores"`
	}
	if err := runtime.UnmarshalAsJSON(answer, &out); err != nil {
		return nil, fmt.Errorf("read the placement scores of %s: %w", strings.Join(sizes, ", "), err)
	}
	return out.Scores, nil
}
