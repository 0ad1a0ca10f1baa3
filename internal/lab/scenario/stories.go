package scenario

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed stories/*.txt
var stories embed.FS

// Stories names the scenarios that come with nap, in alphabetical order.
func Stories() []string {
	entries, _ := fs.ReadDir(stories, "stories") // the folder is embedded
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".txt")
	}
	return names
}

// Story returns a scenario that comes with nap.
func Story(name string) (*Scenario, error) {
	text, err := stories.ReadFile("stories/" + name + ".txt")
	if err != nil {
		return nil, fmt.Errorf("no story %q, there are: %s", name, strings.Join(Stories(), ", "))
	}
	return Parse(name, text)
}
