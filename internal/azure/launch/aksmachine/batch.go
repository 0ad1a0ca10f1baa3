package aksmachine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
)

// Batching says how requests for machines are joined into one. The zero value
// joins none.
type Batching struct {
	// Idle is how long a batch waits for the next machine, Max how long in all.
	Idle, Max time.Duration
	// Size is the most machines of a batch; AKS takes up to 50.
	Size int
}

// batchEntry is what machines of one batch do not share.
type batchEntry struct {
	MachineName string            `json:"machineName"`
	Zones       []string          `json:"zones"`
	Tags        map[string]string `json:"tags"`
}

// batcher joins requests for machines that are alike. It has no goroutine of its
// own: the call that opens a batch waits and sends it for those that join.
type batcher struct {
	settings Batching
	send     func(ctx context.Context, name string, body machine, batch []batchEntry) error

	mu   sync.Mutex
	open map[string]*openBatch
}

// openBatch is a batch that takes machines, until it leaves batcher.open. Its
// fields are guarded by batcher.mu until then; results are written before done is
// closed.
type openBatch struct {
	entries []batchEntry
	joined  chan struct{}
	done    chan struct{}
	results map[string]error // by machine; absent is success
}

func newBatcher(settings Batching, send func(context.Context, string, machine, []batchEntry) error) *batcher {
	return &batcher{settings: settings, send: send, open: map[string]*openBatch{}}
}

// put asks for one machine as part of a batch and returns what became of it. When
// the call that led the batch was given up, the others go on without it.
func (b *batcher) put(ctx context.Context, name string, body machine) error {
	key, template, entry, err := split(name, body)
	if err != nil {
		return err
	}
	for {
		led, err := b.join(ctx, key, template, entry)
		if led || ctx.Err() != nil || !errors.Is(err, context.Canceled) {
			return err
		}
	}
}

// join makes the machine part of a batch and returns what became of it, and
// whether this call has led the batch.
func (b *batcher) join(ctx context.Context, key string, template machine, entry batchEntry) (led bool, err error) {
	b.mu.Lock()
	batch, leads := b.open[key], false
	if batch == nil {
		batch, leads = &openBatch{joined: make(chan struct{}, 1), done: make(chan struct{})}, true
		b.open[key] = batch
	}
	batch.entries = append(batch.entries, entry)
	if len(batch.entries) >= b.settings.Size {
		delete(b.open, key)
	}
	b.mu.Unlock()
	if leads {
		b.lead(ctx, key, batch, template)
	} else {
		select {
		case batch.joined <- struct{}{}:
		default:
		}
	}
	select {
	case <-batch.done:
		return leads, batch.results[entry.MachineName]
	case <-ctx.Done():
		return leads, ctx.Err()
	}
}

// lead waits until no call joins any more, and sends. When the context of the
// call that leads ends meanwhile, all that joined get its error.
func (b *batcher) lead(ctx context.Context, key string, batch *openBatch, template machine) {
	defer close(batch.done)
	idle, most := time.NewTimer(b.settings.Idle), time.NewTimer(b.settings.Max)
	defer idle.Stop()
	defer most.Stop()
	for waiting := b.isOpen(key, batch); waiting; {
		select {
		case <-batch.joined:
			idle.Reset(b.settings.Idle)
			waiting = b.isOpen(key, batch)
		case <-idle.C:
			waiting = false
		case <-most.C:
			waiting = false
		case <-ctx.Done():
			waiting = false
		}
	}
	b.mu.Lock()
	if b.open[key] == batch {
		delete(b.open, key)
	}
	entries := batch.entries
	b.mu.Unlock()
	batch.results = b.sendAll(ctx, template, entries)
}

func (b *batcher) isOpen(key string, batch *openBatch) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open[key] == batch
}

// sendAll sends a batch. AKS makes none of its machines when some are invalid;
// then those that it did not name are sent again without them.
func (b *batcher) sendAll(ctx context.Context, template machine, entries []batchEntry) map[string]error {
	results := map[string]error{}
	for len(entries) > 0 {
		err := b.send(ctx, entries[0].MachineName, template, entries)
		if err == nil {
			return results
		}
		refused, again := refusedOf(err)
		rest := slices.DeleteFunc(slices.Clone(entries), func(e batchEntry) bool {
			own, named := refused[e.MachineName]
			if named {
				results[e.MachineName] = own
			}
			return named
		})
		if len(rest) == len(entries) || !again {
			for _, e := range rest {
				results[e.MachineName] = err
			}
			return results
		}
		entries = rest
	}
	return results
}

// refusedOf reads the refusals of single machines from the refusal of a batch.
// again reports whether the other machines may be asked for once more.
func refusedOf(err error) (refused map[string]error, again bool) {
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		return nil, false
	}
	parsed, ok := unavailable.ReadCause(answer)
	if !ok {
		return nil, false
	}
	details := parsed.Details
	switch parsed.Code {
	case "BatchMachineClientError":
		again = answer.StatusCode == http.StatusBadRequest
	case "BatchMachineInternalServerError":
		// The refusals are JSON within the message, with or without a frame.
		var framed unavailable.Cause
		if json.Unmarshal([]byte(parsed.Message), &framed) == nil {
			details = framed.Details
		} else if json.Unmarshal([]byte(parsed.Message), &details) != nil {
			return nil, false
		}
	default:
		return nil, false
	}
	refused = map[string]error{}
	for _, d := range details {
		if d.Target != "" {
			refused[d.Target] = d.Failure(err)
		}
	}
	return refused, again
}

// split takes apart what machines of a batch share, and its fingerprint, and what
// is a machine's own. Zones are shared by machines with ultra disks alone, for which
// AKS wants them in the body too.
func split(name string, body machine) (key string, template machine, entry batchEntry, err error) {
	entry = batchEntry{MachineName: name, Zones: append([]string{}, body.Zones...), Tags: body.Properties.Tags}
	template = body
	template.Properties.Tags = nil
	if !body.Properties.Hardware.UltraSSDEnabled {
		template.Zones = nil
	}
	text, err := json.Marshal(template)
	if err != nil {
		return "", template, entry, fmt.Errorf("encode AKS machine %s: %w", name, err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), template, entry, nil
}
