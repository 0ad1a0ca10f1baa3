package unavailable

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Failure is a refusal of Azure, typed. It wraps the error that it was read from.
// NewFailure and Classify make it.
type Failure struct {
	Kind Kind
	// Code and Message are Azure's own.
	Code, Message string
	// ZeroLimit says of a quota failure that the limit itself is zero.
	ZeroLimit bool
	// refusal is the row of the table of the kind.
	refusal Refusal
	// policies are those that deny sizes, of a refusal of Azure Policy; empty where it does not
	// say what they compare.
	policies []SizePolicy
	// err is what the failure was read from; nil when it is known by its text alone.
	err error
}

// Error says what Azure answered, and what a person can do about it.
func (f *Failure) Error() string {
	if f.refusal.Advice != "" {
		return fmt.Sprintf("%s: %s (%s)", f.Code, f.Message, f.refusal.Advice)
	}
	return fmt.Sprintf("%s: %s", f.Code, f.Message)
}

// Advice is what a person can do about it; empty where no one need act.
func (f *Failure) Advice() string { return f.refusal.Advice }

// Unwrap gives the SDK's error.
func (f *Failure) Unwrap() error { return f.err }

// Capacity reports whether another offering may succeed where this one failed.
func (f *Failure) Capacity() bool {
	return f.refusal.Reaction == TryNext || f.refusal.Reaction == TryOtherQuota || f.refusal.Reaction == TryAgain
}

// AskAgain reports whether the same offering may succeed at once.
func (f *Failure) AskAgain() bool { return f.refusal.Reaction == TryAgain }

// RulesOut reports whether the refusal speaks about another offering too, in a way
// that the cache of unavailable offerings does not hold: a quota is used up for
// every offering that draws on it.
func (f *Failure) RulesOut(o *model.Offering) bool {
	return f.refusal.Reaction == TryOtherQuota &&
		slices.ContainsFunc(o.Quotas, func(use model.QuotaUse) bool { return use.Quota == f.refusal.Quota })
}

// Quota is the quota that is used up for every offering which draws on it, where the
// refusal rules those out; else empty.
func (f *Failure) Quota() string {
	if f.refusal.Reaction != TryOtherQuota {
		return ""
	}
	return f.refusal.Quota
}

// figures finds what a refusal for want of quota says of it, as Azure writes it.
var figures = regexp.MustCompile(`Current Limit: (\d+), Current Usage: (\d+)`)

// Usage is the limit of the quota that is used up and how much of it is used, in vCPUs, where
// Azure's message says both.
func (f *Failure) Usage() (limit, used int64, told bool) {
	found := figures.FindStringSubmatch(f.Message)
	if f.Quota() == "" || found == nil {
		return 0, 0, false
	}
	limit, limitErr := strconv.ParseInt(found[1], 10, 64)
	used, usedErr := strconv.ParseInt(found[2], 10, 64)
	return limit, used, limitErr == nil && usedErr == nil
}

// Reason is the reason of the NodeClaim's Launched condition, in the words that
// dashboards of AKS already know.
func (f *Failure) Reason() string { return f.refusal.Reason }

// NewFailure types a refusal that is known by code and message, such as the
// status of a machine whose operation ended unobserved.
func NewFailure(code, message string, err error) *Failure {
	row := refusalFor(code, message)
	return &Failure{
		Kind: row.Kind, Code: code, Message: message,
		ZeroLimit: strings.Contains(message, "Current Limit: 0"), refusal: row, err: err,
	}
}

// Classify types an error of the SDK. It returns nil for errors that are no
// answer of Azure (cancelled, connection lost).
func Classify(err error) *Failure {
	var known *Failure
	if errors.As(err, &known) {
		return known
	}
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) || errors.Is(err, context.Canceled) {
		return nil
	}
	cause, ok := causeIn(answer)
	if !ok {
		cause = Cause{Code: answer.ErrorCode, Message: message(answer)}
	}
	failure := cause.Failure(err)
	if answer.StatusCode == http.StatusTooManyRequests {
		// An older form of the answer has the code of a used up quota.
		failure.Kind, failure.refusal = Throttled, rowOf(Throttled)
	}
	return failure
}

// Cause is Azure's form of an error. Target names what it is about, where an answer
// is about several things.
type Cause struct {
	Code    string  `json:"code"`
	Message string  `json:"message"`
	Target  string  `json:"target"`
	Details []Cause `json:"details"`
	// AdditionalInfo says of a refusal of Azure Policy what the policies are.
	AdditionalInfo []AdditionalInfo `json:"additionalInfo"`
}

// Failure types the cause. What one service of Azure says is often wrapped in what
// another one says, and only the former tells whether other offerings may do.
func (c Cause) Failure(err error) *Failure {
	if c.Code == policyCode {
		return c.disallowed(err)
	}
	failure := NewFailure(c.Code, c.Message, err)
	if failure.Kind == Other && c.Target != "" {
		// Some refusals say by their target alone what they are about.
		if about := NewFailure(c.Code, c.Message+" Target: "+c.Target, err); about.Kind != Other {
			return about
		}
	}
	if failure.Kind != Other || len(c.Details) == 0 {
		return failure
	}
	inner := c.Details[0].Failure(err)
	for _, d := range c.Details[1:] {
		if inner.Kind != Other {
			break
		}
		if other := d.Failure(err); other.Kind != Other {
			inner = other
		}
	}
	return inner
}

// causeIn reads the body of an answer; false when it is not of Azure's form.
func causeIn(answer *azcore.ResponseError) (Cause, bool) {
	c, ok := ReadCause(answer)
	if !ok {
		return Cause{}, false
	}
	if strings.HasPrefix(c.Code, "BatchMachine") {
		c.Details = nil // they are about single machines, each about another
	}
	c.Code = cmp.Or(c.Code, answer.ErrorCode)
	c.Message = strings.Join(strings.Fields(c.Message), " ")
	return c, true
}

// ReadCause reads the error in the body of an answer, in ARM's frame or without one, as
// AKS writes its own; false when the body has neither.
func ReadCause(answer *azcore.ResponseError) (Cause, bool) {
	if answer.RawResponse == nil || answer.RawResponse.Body == nil {
		return Cause{}, false
	}
	text, err := runtime.Payload(answer.RawResponse) // the SDK has read it into memory
	if err != nil {
		return Cause{}, false
	}
	var framed struct {
		Error Cause `json:"error"`
	}
	var flat Cause
	says := func(c Cause) bool { return c.Message != "" || len(c.Details) > 0 }
	switch {
	case json.Unmarshal(text, &framed) == nil && says(framed.Error):
		return framed.Error, true
	case json.Unmarshal(text, &flat) == nil && says(flat):
		return flat, true
	}
	return Cause{}, false
}

// message extracts Azure's sentence from the SDK's multi-line error text, which
// quotes the body as JSON.
func message(answer *azcore.ResponseError) string {
	body := answer.Error()
	const marker = `"message": "`
	i := strings.Index(body, marker)
	if i < 0 {
		return strings.Join(strings.Fields(body), " ")
	}
	text := body[i+len(marker):]
	for end := 0; end < len(text); end++ {
		switch text[end] {
		case '\\':
			end++
		case '"':
			return strings.NewReplacer(`\"`, `"`, `\n`, " ", `\\`, `\`).Replace(text[:end])
		}
	}
	return text
}
