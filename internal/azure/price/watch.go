package price

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"
)

// lookEvery is how often the file of terms is looked at. A mounted ConfigMap
// changes by a link that is replaced, which no watch of one file sees.
// A file counts once two looks have found it the same, so that none is read while
// it is being written.
const lookEvery = 250 * time.Millisecond

// File is a file of terms that is kept in a book.
type File struct {
	path string
	book *Book
	seen stamp // at the last look
	read stamp // what is in the book, or was refused
}

// stamp tells versions of a file apart.
type stamp struct {
	changed time.Time
	size    int64
	missing bool
}

// OpenFile reads a file of terms into the book. The error names the file and
// everything that is wrong with it.
func OpenFile(path string, book *Book) (*File, error) {
	f := &File{path: path, book: book}
	f.seen = f.stamp()
	f.read = f.seen
	if err := f.load(); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *File) stamp() stamp {
	info, err := os.Stat(f.path)
	if err != nil {
		return stamp{missing: true}
	}
	return stamp{changed: info.ModTime(), size: info.Size()}
}

func (f *File) load() error {
	text, err := os.ReadFile(f.path)
	if err != nil {
		return fmt.Errorf("read the prices: %w", err)
	}
	terms, err := ParseTerms(text)
	if err != nil {
		return fmt.Errorf("read the prices: %s: %w", f.path, err)
	}
	f.book.SetTerms(terms)
	return nil
}

// look reads the file if it has changed, and reports whether it has. A file that
// is wrong or gone leaves the book as it is.
func (f *File) look() (bool, error) {
	now := f.stamp()
	settled := now == f.seen
	f.seen = now
	if !settled || now == f.read {
		return false, nil
	}
	f.read = now
	return true, f.load()
}

// Run follows the file until the context ends, and calls read whenever other terms hold.
func (f *File) Run(ctx context.Context, log *slog.Logger, read func()) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		switch changed, err := f.look(); {
		case err != nil:
			log.Error("the file of prices is passed over; the prices before it hold", "error", err)
		case changed:
			log.Info("prices read", "file", f.path)
			read()
		}
	}
}
