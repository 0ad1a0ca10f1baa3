package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nodeautoprovision/nap/internal/cli/command"
)

// pluginName is how the plugin of kubectl is called.
const pluginName = "kubectl nap"

// talk is standard error of the plugin: what is said there offers commands of the plugin.
type talk struct{ streams command.Streams }

// Write implements io.Writer.
func (t talk) Write(text []byte) (int, error) {
	if _, err := io.WriteString(t.streams.Err, offered(&t.streams, string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// asPlugin are the streams of the program as kubectl runs it.
func asPlugin(s command.Streams) command.Streams {
	s.Program = pluginName
	s.Err = talk{s}
	return s
}

// pluginOf makes a tree of commands the plugin's: it calls itself as kubectl does, and its help
// offers commands of the plugin.
func pluginOf(root *cobra.Command, s *command.Streams) *cobra.Command {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.Short, cmd.Long, cmd.Example = offeredIn(s, cmd.Short), offered(s, cmd.Long), offeredExamples(s, cmd.Example)
		for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
			flags.VisitAll(func(f *pflag.Flag) { f.Usage = offeredIn(s, f.Usage) })
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)
	return command.ShownAs(root, s.Program)
}

// offeredExamples are the examples of a command's help as they have to be typed here. Those that
// become too long for the screen are broken as a shell takes them.
func offeredExamples(s *command.Streams, text string) string {
	const indent = "  "
	var out []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		told := offeredIn(s, line)
		if told == line || columnsOf(told) <= screenColumns {
			out = append(out, told)
			continue
		}
		for _, part := range breakCommand(strings.TrimSpace(told)) {
			out = append(out, indent+part)
		}
	}
	return strings.Join(out, "\n")
}
