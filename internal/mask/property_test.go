package mask

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

// The characters of secrets.
const (
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	opaque  = letters + "+/=_~.-"
	word    = opaque + "!#$%&()*:;<>?@[]^{|},"
	whole   = word + " \"'\\`"
)

// template is a text that a secret is planted into. The characters of the secret are those
// that can stand there.
type template struct {
	letters string
	plant   func(t *rapid.T, secret string) string
}

func names(t *rapid.T) string {
	return rapid.SampledFrom([]string{"password", "clientSecret", "client_secret", "client-key-data", "AZURE_CLIENT_SECRET", "token", "sasToken",
		"api-key", "Passphrase", "userData", "accountKey"}).Draw(t, "name")
}

// object has the secret in a field of an object in a list.
func object(t *rapid.T, secret string) map[string]any {
	return map[string]any{"kind": "Pod", "list": []any{map[string]any{names(t): secret, "zone": "eastus-1"}}, "count": 3}
}

func asJSON(t *rapid.T, value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// quotedOften is JSON in JSON, in JSON.
func quotedOften(t *rapid.T, text string) string {
	for range rapid.IntRange(0, 3).Draw(t, "levels") {
		text = asJSON(t, rapid.SampledFrom([]any{text, map[string]string{"m": text, "n": "y"}, "answer: " + text + ", again"}).Draw(t, "around"))
	}
	return text
}

// logged is a line of a log.
func logged(t *rapid.T, text string) string {
	var out bytes.Buffer
	var handler slog.Handler = slog.NewTextHandler(&out, nil)
	if rapid.Bool().Draw(t, "JSON") {
		handler = slog.NewJSONHandler(&out, nil)
	}
	line := slog.NewRecord(time.Now(), slog.LevelInfo, "it is "+text, 0)
	line.Add("pod", "shop/web-1", "error", "again: "+text, "count", 3)
	if err := handler.Handle(context.Background(), line); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func templates() map[string]template {
	return map[string]template{
		"JSON": {whole, func(t *rapid.T, s string) string { return quotedOften(t, asJSON(t, object(t, s))) }},
		"JSON in a log": {whole, func(t *rapid.T, s string) string {
			return logged(t, quotedOften(t, asJSON(t, object(t, s))))
		}},
		"indented JSON": {whole, func(t *rapid.T, s string) string {
			text, err := json.MarshalIndent(object(t, s), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}},
		"YAML": {whole, func(t *rapid.T, s string) string {
			text, err := yaml.Marshal(Value(object(t, s)))
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}},
		"YAML of words": {word, func(t *rapid.T, s string) string {
			text, err := yaml.Marshal(object(t, s))
			if err != nil {
				t.Fatal(err)
			}
			return quotedOften(t, string(text))
		}},
		"flag":  {opaque, func(t *rapid.T, s string) string { return logged(t, "nap --"+names(t)+" "+s+" --wait") }},
		"prose": {opaque, func(t *rapid.T, s string) string { return logged(t, "the "+names(t)+": "+s+" of pod shop/web") }},
		"header": {opaque, func(t *rapid.T, s string) string {
			return logged(t, rapid.SampledFrom([]string{"Authorization: Bearer ", "Authorization: ", "sent Bearer ", "map[Authorization:[Bearer "}).Draw(t, "header")+s)
		}},
		"query": {whole, func(t *rapid.T, s string) string {
			address := "https://acc.blob.core.windows.net/c/b?sv=1&sig=" + url.QueryEscape(s) + "&se=2"
			return quotedOften(t, rapid.SampledFrom([]string{address, strings.ReplaceAll(address, "&", "&amp;")}).Draw(t, "HTML"))
		}},
		"user": {word, func(t *rapid.T, s string) string {
			return logged(t, "dial "+proxy(t, strings.NewReplacer("<", "", ">", "").Replace(s)))
		}},
		"address": {whole, func(t *rapid.T, s string) string { return Address(proxy(t, s)) }},
		"address in JSON": {word + " ", func(t *rapid.T, s string) string {
			return quotedOften(t, asJSON(t, map[string]string{"httpProxy": proxy(t, s), "HTTP": "http://usr7:" + s + "@proxy:3128"}))
		}},
		"connection string": {letters + "+/=", func(t *rapid.T, s string) string {
			return logged(t, "AccountName=acc;AccountKey="+s+";EndpointSuffix=core.windows.net")
		}},
		"PEM": {letters + "+/", func(t *rapid.T, s string) string {
			return logged(t, quotedOften(t, "-----BEGIN PRIVATE KEY-----\n"+s+"\n"+s+"==\n-----END PRIVATE KEY-----\n"))
		}},
		"web token": {letters + "_-", func(t *rapid.T, s string) string { return logged(t, "eyJhbGciOiJSUzI1NiJ9."+s+"."+s) }},
	}
}

// proxy is an address of a proxy whose user or password is a secret.
func proxy(t *rapid.T, secret string) string {
	if rapid.Bool().Draw(t, "escaped") {
		secret = url.PathEscape(secret)
	}
	return rapid.SampledFrom([]string{"http://usr7:", "HTTPS://usr7:", "usr7:", "//usr7:", "http://", "http://:"}).Draw(t, "scheme") + secret + "@proxy:3128"
}

// TestPlantedSecretsNeverAppear plants random secrets into random texts: none of them, and no
// part of them, is in the masked text, which is masked for good.
func TestPlantedSecretsNeverAppear(t *testing.T) {
	for name, template := range templates() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				inner := rapid.StringOfN(rapid.SampledFrom([]rune(template.letters)), 6, 40, -1).Draw(t, "secret")
				ends := rapid.SampledFrom([]rune(letters))
				secret := string(ends.Draw(t, "first")) + inner + string(ends.Draw(t, "last"))
				text := template.plant(t, secret)
				got := Text(text)
				for i := range len(secret) - 5 {
					if part := secret[i : i+6]; telling(part) && strings.Contains(got, part) {
						t.Fatalf("%q of the secret is in\n%s\nmade of\n%s", part, got, text)
					}
				}
				if again := Text(got); again != got {
					t.Fatalf("masked again\n%s\nbecame\n%s", got, again)
				}
			})
		})
	}
}

// telling reports whether a part of a secret is recognized in a text.
func telling(part string) bool {
	n := 0
	for _, r := range part {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			n++
		}
	}
	return n >= 5
}

// TestTextMasksForGood: of any text, of which every byte that is no secret stays.
func TestTextMasksForGood(t *testing.T) {
	pieces := []string{"password", "token=", ": ", "\"", "\\\"", "\\\\\\\"", "'", "\\n", "\n", "@", "http://", "://", "me:", "proxy:3128", "sig=", "&", "\\u0026",
		"&amp;", "%3D", "Bearer ", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "{", "}", "[", "]", ",", "***", "|", "  ", "- ", "value", "eyJ0", "x"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(pieces), rapid.StringN(0, 8, -1)), 0, 30).Draw(t, "pieces"), "")
		got := Text(text)
		if again := Text(got); again != got {
			t.Fatalf("%q became %q, and that %q", text, got, again)
		}
		if strings.Contains(text, "*") {
			return
		}
		at := 0
		for part := range strings.SplitSeq(got, Mask) {
			i := strings.Index(text[at:], part)
			if i < 0 {
				t.Fatalf("%q of %q is not in %q", part, got, text)
			}
			at += i + len(part)
		}
	})
}
