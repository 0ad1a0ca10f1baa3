// Command decisions prints a line for every case of bench/decisions: its name and
// the hash of what the planner decides. -show NAME prints a decision in full.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/nodeautoprovision/nap/bench/decisions"
)

func main() {
	prefix := flag.String("only", "", "decide only cases whose names begin with this, for instance \"large/\"")
	show := flag.String("show", "", "print the decision of the case of this name in full")
	small := flag.Bool("small", false, "decide only the small cases, as the tests do")
	flag.Parse()
	if err := run(*prefix, *show, *small); err != nil {
		fmt.Fprintf(os.Stderr, "decisions: %v\n", err)
		os.Exit(1)
	}
}

func run(prefix, show string, small bool) error {
	found := false
	for _, c := range decisions.All() {
		if show != "" && c.Name != show || !strings.HasPrefix(c.Name, prefix) || small && !c.Small {
			continue
		}
		found = true
		text, err := c.Decide(context.Background())
		if err != nil {
			return err
		}
		if show != "" {
			text = strings.TrimSuffix(text, "\n")
		} else {
			text = c.Name + " " + decisions.Hash(text)
		}
		if _, err := fmt.Fprintln(os.Stdout, text); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("no case is called %q or begins with %q", show, prefix)
	}
	return nil
}
