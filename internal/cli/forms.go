package cli

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/nodeautoprovision/nap/internal/skutable"
)

// jsonPath is the form of output that a template of JSONPath makes, as kubectl has it.
const jsonPath = "jsonpath=TEMPLATE"

// documentForms are the forms of an answer that is one document, beside what people read.
func documentForms(also ...string) []string {
	return slices.Concat([]string{"table", "json", "yaml"}, also, []string{jsonPath})
}

// rowForms are the forms of an answer that is rows.
func rowForms(also ...string) []string {
	return slices.Concat([]string{"table", "wide", "json", "yaml", "csv", "name"}, also, []string{jsonPath})
}

// textForms are the forms of an answer that is sentences, beside what programs read.
func textForms() []string { return []string{"text", "json", "yaml", jsonPath} }

// isDocument reports whether a form is for programs: JSON, YAML or a part of them.
func isDocument(form string) bool {
	return form == "json" || form == "yaml" || strings.HasPrefix(form, "jsonpath=")
}

// addOutput adds the flag --output with its forms, of which the first is the default.
func addOutput(cmd *cobra.Command, output *string, forms []string) {
	last := len(forms) - 1
	cmd.Flags().StringVarP(output, "output", "o", forms[0], strings.Join(forms[:last], ", ")+" or "+forms[last])
	completeFlag(cmd, "output", func() []string {
		var words []string
		for _, form := range forms {
			words = append(words, strings.TrimSuffix(form, "TEMPLATE"))
		}
		return words
	})
}

// checkOutput refuses what is none of the forms.
func checkOutput(output string, forms []string) error {
	for _, form := range forms {
		if form == jsonPath && output == "jsonpath=" {
			return errors.New("--output: got \"jsonpath=\" without a template, must be such as jsonpath={.items[*].name}; -o json shows the fields")
		}
		if form == jsonPath && strings.HasPrefix(output, "jsonpath=") {
			return nil
		}
	}
	return oneOf("output", output, forms...)
}

// completeFlag lets a shell complete the values of a flag.
func completeFlag(cmd *cobra.Command, flag string, words func() []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return words(), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic("a flag is completed that is not there, or twice: " + err.Error())
	}
}

// completeWords lets a shell complete a flag that takes some words only.
func completeWords(cmd *cobra.Command, flag string, words ...string) {
	completeFlag(cmd, flag, func() []string { return words })
}

// completeRegion lets a shell complete --region by the regions that the built-in table has prices of.
func completeRegion(cmd *cobra.Command) {
	completeFlag(cmd, "region", func() []string {
		table, err := skutable.Load()
		if err != nil {
			return nil
		}
		return table.Regions()
	})
}

// completeContexts lets a shell complete --context of all commands by the kubeconfig.
func completeContexts(cmd *cobra.Command) {
	if cmd.Flags().Lookup("context") != nil && !cmd.DisableFlagParsing {
		completeFlag(cmd, "context", func() []string {
			rules := clientcmd.NewDefaultClientConfigLoadingRules()
			if file := cmd.Flags().Lookup("kubeconfig"); file != nil {
				rules.ExplicitPath = file.Value.String()
			}
			raw, err := rules.Load()
			if err != nil {
				return nil
			}
			var names []string
			for name := range raw.Contexts {
				names = append(names, name)
			}
			return names
		})
	}
	for _, sub := range cmd.Commands() {
		completeContexts(sub)
	}
}
