// Package azcli plays commands of the Azure command line on the simulated Azure, so that
// tests can run those which pages show: what they ask of Azure Resource Manager is asked.
// Commands, flags and queries that no page has are refused.
//
//	s := azcli.Shell{TB: t, Env: env, Variables: map[string]string{"ARM_RESOURCE_GROUP": "nap"}}
//	s.Run(`az identity create --resource-group $ARM_RESOURCE_GROUP --name own`)
package azcli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
)

// Shell runs commands one after the other.
type Shell struct {
	testing.TB
	Env *armtest.Env
	// Variables are those that the commands use; "export NAME=VALUE" adds to them.
	Variables map[string]string
	// Root is the folder that files of commands are relative to.
	Root string
	// Refused is the last answer with which Azure refused; empty without one.
	Refused string
}

// Run runs a command, and returns what it prints.
func (s *Shell) Run(line string) string {
	s.Helper()
	s.Refused = ""
	words := s.words(line)
	switch {
	case len(words) >= 2 && words[0] == "export":
		for _, w := range words[1:] {
			name, value, _ := strings.Cut(w, "=")
			s.Variables[name] = value
		}
		return ""
	case len(words) >= 2 && words[0] == "az":
		return s.az(words[1:])
	}
	s.Fatalf("%s: no command of az", line)
	return ""
}

// words splits a command as a shell does: quotes, variables and commands in it.
func (s *Shell) words(line string) []string {
	s.Helper()
	var out []string
	word, quote, open := "", byte(0), false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quote == '\'' && c != '\'':
			word += string(c)
		case c == quote && quote != 0:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, open = c, true
		case quote == 0 && c == ' ':
			if word != "" || open {
				out = append(out, word)
			}
			word, open = "", false
		case c == '$' && strings.HasPrefix(line[i:], "$("):
			end := closing(line, i+2)
			word += strings.TrimSpace(s.Run(line[i+2 : end]))
			i = end
		case c == '$':
			name := variable(line[i+1:])
			value, known := s.Variables[name]
			if !known {
				s.Fatalf("%s: variable %s has no value", line, name)
			}
			word += value
			i += len(name)
		default:
			word += string(c)
		}
	}
	if word != "" || open {
		out = append(out, word)
	}
	return out
}

// variable is the name of a variable with which a text begins.
func variable(text string) string {
	end := strings.IndexFunc(text, func(c rune) bool { return c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') })
	if end < 0 {
		return text
	}
	return text[:end]
}

// closing is where the parenthesis ends that was opened before from.
func closing(line string, from int) int {
	depth := 1
	for i := from; i < len(line); i++ {
		switch line[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(line) - 1
}

// ask sends a request to Azure Resource Manager. A refusal is kept in Refused.
func (s *Shell) ask(method, path, version string, body any) map[string]any {
	s.Helper()
	status, text := s.Env.Ask(s, method, path, version, body)
	if status >= http.StatusBadRequest {
		s.Refused = fmt.Sprintf("%s %s: %d %s: %s", method, path, status, http.StatusText(status), text)
		return nil
	}
	out := map[string]any{}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &out); err != nil {
			s.Fatalf("%s: %v", text, err)
		}
	}
	return out
}
