package command

import (
	"context"
	"io"
)

// Until makes reading from standard input end with a context: nothing else ends it on a terminal,
// or on a pipe into which a program writes nothing.
func (s Streams) Until(ctx context.Context) Streams {
	s.In = &input{ctx: ctx, from: s.In}
	return s
}

// Whole are the streams as the process has them, for another program to which they are handed on.
func (s Streams) Whole() Streams {
	if in, is := s.In.(*input); is {
		s.In = in.from
	}
	return s
}

// input is a reader that ends with a context. Once it has, a call of the reader below may never
// return, and has memory of its own.
type input struct {
	ctx  context.Context
	from io.Reader
	text []byte
}

// Read implements io.Reader.
func (i *input) Read(into []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	if len(i.text) < len(into) {
		i.text = make([]byte, len(into))
	}
	type result struct {
		n   int
		err error
	}
	done, text := make(chan result, 1), i.text[:len(into)]
	go func() {
		n, err := i.from.Read(text)
		done <- result{n, err}
	}()
	select {
	case r := <-done:
		return copy(into, text[:r.n]), r.err
	case <-i.ctx.Done():
		return 0, i.ctx.Err()
	}
}
